import { readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { TranscriptSealStatus } from "@depute/contracts/depute/tasks/v1/session_service_pb";
import { as } from "@depute/service/testing";
import { afterEach, beforeEach, expect, test } from "vitest";
import { ANN, EVE, refusal, Stage } from "../testing/cast.ts";

const { UNSPECIFIED, UNSEALED, SEALED, WRONG } = TranscriptSealStatus;

let stage: Stage;
beforeEach(async () => {
  stage = await new Stage().start();
});
afterEach(() => stage.stop());

async function exported(sessionId: string) {
  const { transcript } = await stage.api.exportTranscript({ sessionId }, as(ANN.key));
  if (transcript === undefined) throw new Error("no transcript");
  return transcript;
}

const verifyTranscript = async (transcript: Awaited<ReturnType<typeof exported>>) => {
  const { valid, seal, code } = await stage.api.verifyTranscript({ transcript }, as(EVE.key));
  return [valid, seal, code];
};

test("an export has a seal by the platform's published key, also after a restart", async () => {
  const { sessionId } = await stage.introduced();
  const transcript = await exported(sessionId);
  const { keys } = await stage.api.getTranscriptKeys({}, as(EVE.key));
  expect(keys).toMatchObject({
    format: "asp-transcript-keys/0.1",
    sealKeys: [transcript.seal?.key],
    logKeys: [transcript.seal?.log?.logKey],
  });
  expect(await verifyTranscript(transcript)).toEqual([true, SEALED, ""]);
  await stage.host.whileDown(() => {});
  expect(await verifyTranscript(transcript)).toEqual([true, SEALED, ""]);
  expect((await exported(sessionId)).seal?.key).toBe(transcript.seal?.key);
});

test("the key has its own file, which only the owner can read", () => {
  const file = join(stage.host.dataDir, "session-seal.key");
  expect(statSync(file).mode & 0o777).toBe(0o600);
  expect(readFileSync(file, "utf8").trim()).toMatch(/^[A-Za-z0-9_-]{43}$/);
});

test("a changed export is distinguished from one without a seal", async () => {
  const transcript = await exported((await stage.introduced()).sessionId);
  const { seal: _seal, ...unsealed } = transcript;
  expect(await verifyTranscript(unsealed)).toEqual([true, UNSEALED, ""]);
  expect(await verifyTranscript({ ...transcript, exportedAt: "2026-03-07T15:00:01.000Z" })).toEqual([
    false,
    WRONG,
    "wrong_seal",
  ]);
  const cut = structuredClone(transcript);
  cut.messages.pop();
  expect(await verifyTranscript(cut)).toEqual([false, UNSPECIFIED, "wrong_outcome"]);
});

test("while the log is unavailable no transcript is exported, and the refusal names the cause", async () => {
  const { sessionId } = await stage.introduced();
  const transcript = await exported(sessionId);
  stage.log.isUp = false;
  for (const call of [
    () => stage.api.exportTranscript({ sessionId }, as(ANN.key)),
    () => stage.api.getTranscriptKeys({}, as(ANN.key)),
    () => stage.api.verifyTranscript({ transcript }, as(ANN.key)),
  ]) {
    expect(await refusal(call())).toBe("DEPENDENCY_UNAVAILABLE");
  }
  const { seal: _seal, ...unsealed } = transcript;
  expect(await verifyTranscript(unsealed)).toEqual([true, UNSEALED, ""]);
  stage.log.isUp = true;
  expect(await verifyTranscript(await exported(sessionId))).toEqual([true, SEALED, ""]);
});
