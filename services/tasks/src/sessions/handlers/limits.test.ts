import { ConformanceLevel } from "@depute/contracts/asp/v0/asp_common_pb";
import { as } from "@depute/service/testing";
import { afterEach, expect, test } from "vitest";
import { ANN, BEN, INVITATION, refusalCode, Stage } from "../testing/cast.ts";

let stage: Stage;
afterEach(() => stage.stop());

/** An id as in ASP's examples: a UUID in length and dashes, but with letters that a UUID cannot contain. */
const TEXT_ID = "019526b1-0000-7000-8000-session00002";

test.each([
  ["by default", [], ["INVALID_REQUEST", "malformed"]],
  ["unless a setting says otherwise", ["--asp-strict-ids", "false"], ["nothing was refused", undefined]],
])("ids are UUIDv7 %s", async (_, args, expected) => {
  stage = await new Stage().start(args);
  const invitation = stage.message(ANN, "PROPOSE", INVITATION, TEXT_ID, { recipient: BEN.uri });
  const opened = stage.api.createSession({ invitation }, as(ANN.key));
  expect(await refusalCode(opened)).toEqual(expected);
  if (expected[1] !== undefined) return;
  await stage.say(BEN, "ACCEPT", { referenceId: "inv" }, { sessionId: TEXT_ID });
  const { transcript } = await stage.api.exportTranscript({ sessionId: TEXT_ID }, as(ANN.key));
  expect(transcript?.messages).toHaveLength(2);
});

test("an agent has a limit of messages a minute in all its sessions, accepted or refused", async () => {
  stage = await new Stage().start(["--asp-message-rates", "5,5,5,5,5"]);
  const session = await stage.introduced();
  await stage.say(ANN, "OBSERVE", {}, session);
  const stale = stage.message(ANN, "OBSERVE", {}, { ...session, lastHash: `sha256:${"1".repeat(64)}` });
  const refused = () => refusalCode(stage.api.appendMessage({ envelope: stale }, as(ANN.key)));
  expect(await refused()).toEqual(["SESSION_HEAD_MOVED", "head_moved"]);
  await stage.invite();
  expect(await refused()).toEqual(["LIMIT_EXCEEDED", "at_capacity"]);
  expect((await refusalCode(stage.invite()))[0]).toBe("LIMIT_EXCEEDED");
  await stage.say(BEN, "OBSERVE", {}, session);
  stage.clock.advance(12_000);
  await stage.say(ANN, "OBSERVE", {}, session);
});

test("an agent can use only the conformance level that its card declares", async () => {
  stage = new Stage();
  stage.cards.set(BEN.uri, { conformanceLevel: ConformanceLevel.MINIMAL });
  await stage.start();
  const session = await stage.introduced();
  const proposal = { proposalId: "p", type: "terms", subject: "s", terms: {} };
  expect(await refusalCode(stage.say(ANN, "PROPOSE", proposal, session))).toEqual([
    "SESSION_NOT_ALLOWED",
    "not_conformant",
  ]);
  await stage.say(ANN, "QUERY", { queryId: "q" }, session);
});

test("a dispute is visible to the participants", async () => {
  stage = await new Stage().start();
  const session = await stage.introduced();
  const { sessionId } = session;
  await stage.say(ANN, "PROPOSE", { proposalId: "p", type: "terms", subject: "s", terms: {} }, session);
  await stage.say(ANN, "COMMIT", { commitmentId: "cmt", terms: { seats: 1 } }, session);
  await stage.say(BEN, "ACCEPT", { referenceId: "cmt" }, session);
  const disputes = async () => (await stage.api.listDisputes({ sessionId }, as(ANN.key))).disputes;
  expect(await disputes()).toEqual([]);
  await stage.say(BEN, "INFORM", { informType: "result", references: ["cmt"] }, session);
  await stage.say(ANN, "REJECT", { referenceId: "cmt" }, session);
  expect(await disputes()).toMatchObject([
    {
      reason: "fulfillment-mismatch",
      filedBy: ANN.uri,
      filedAgainst: BEN.uri,
      evidence: { agreedTerms: { seats: 1 } },
    },
  ]);
});

test("a message has a size limit", async () => {
  stage = await new Stage().start();
  const session = await stage.introduced();
  const long = stage.message(ANN, "OBSERVE", { data: "x".repeat(262_144) }, session);
  expect(await refusalCode(stage.api.appendMessage({ envelope: long }, as(ANN.key)))).toEqual([
    "INVALID_REQUEST",
    "malformed",
  ]);
});
