import type { JsonObject } from "@bufbuild/protobuf";
import type { Performative } from "@depute/contracts/asp/v0/envelope_pb";
import { newId } from "@depute/core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Agent, agent, overHttp, scores, type Wire, write } from "./cast.ts";
import { type Platform, register, startPlatform } from "./platform.ts";

/** Keys of one owner, each with an organization that it invented. */
const SYBILS = ["one", "two", "three"].map((name) =>
  agent(`agent://${name}.example/sybil/${name}`, `org_${name}`),
);
/** A quarter of the distance from the initial score, 10, to 50, the minimum of level 2: 10 + 40 / 4. */
const QUARTER = 20;

let platform: Platform;
let wire: Wire;
beforeAll(async () => {
  platform = await startPlatform();
  wire = overHttp(platform.url);
  for (const one of SYBILS) await register(platform, one);
});
afterAll(() => platform.stop());

const idOf = ({ uri }: Agent) => uri.slice(uri.lastIndexOf("/") + 1);
const trustOf = async (one: Agent) => {
  const url = `${platform.url}/depute.registry.v1.TrustService/GetTrust`;
  const headers = { "content-type": "application/json" };
  const body = JSON.stringify({ agentId: idOf(one) });
  const response = await fetch(url, { method: "POST", headers, body });
  const { overall } = (await response.json()) as {
    overall: { score?: number; level?: number; evidenceCount?: string };
  };
  const { score = 0, level = 0, evidenceCount = "0" } = overall;
  return { score, level, count: Number(evidenceCount) };
};

type Said = readonly [Agent, keyof typeof Performative, JsonObject];

/** Runs a session from the invitation to the end, with the given messages in between. */
async function session(first: Agent, second: Agent, lines: readonly Said[], outcome: JsonObject = {}) {
  const sessionId = newId();
  const invitation = { proposalId: "inv", type: "session-invitation", subject: "Trust" };
  // A message must state the sender's current score, which the previous session has changed.
  for (const one of [first, second]) scores.set(one.uri, Math.round((await trustOf(one)).score * 10) / 10);
  await wire.open(write(first, "PROPOSE", invitation, { sessionId }, second.uri));
  const identity = ({ uri, key }: Agent): JsonObject => ({
    informType: "identity",
    data: { agentId: uri, name: "A", signingPublicKey: { kty: "OKP", crv: "Ed25519", x: key } },
  });
  const rated = ({ uri: agentId }: Agent) => ({ ...outcome, ratings: [{ agentId, stars: 5 }] });
  const all: readonly Said[] = [
    [second, "ACCEPT", { referenceId: "inv" }],
    [first, "INFORM", identity(first)],
    [second, "INFORM", identity(second)],
    [first, "INFORM", { informType: "fact", subject: "s", data: {} }],
    ...lines,
    [first, "CLOSE", rated(second)],
    [second, "CLOSE", rated(first)],
  ];
  for (const [who, performative, body] of all) {
    await wire.append(write(who, performative, body, await wire.get(sessionId)));
  }
}

/** Waits until the registry has at least `least` pieces of evidence for an agent. */
const recorded = (one: Agent, least: number) =>
  expect.poll(async () => (await trustOf(one)).count, { timeout: 20_000 }).toBeGreaterThanOrEqual(least);

const [ONE, TWO, THREE] = SYBILS as [Agent, Agent, Agent];

test("empty sessions and commitments over nothing move no score", async () => {
  await session(ONE, TWO, []);
  const agreed: Said[] = [
    [TWO, "COMMIT", { commitmentId: "cmt", type: "agreement", subject: "s", terms: {} }],
    [ONE, "ACCEPT", { referenceId: "cmt" }],
    [ONE, "INFORM", { informType: "result", references: ["cmt"] }],
  ];
  await session(TWO, ONE, agreed, { outcome: "fulfilled" });
  for (const one of [ONE, TWO]) {
    await recorded(one, 2);
    expect(await trustOf(one)).toMatchObject({ score: 10, level: 0 });
  }
});

test("commitments with escrow between keys of invented organizations stay below a quarter of the way", async () => {
  const pairs = [
    [ONE, TWO],
    [TWO, THREE],
    [THREE, ONE],
  ] as const;
  const rounds = 5;
  for (let round = 0; round < rounds; round++) {
    for (const [payer, worker] of pairs) {
      const escrow = { amount: 1_000_000, currency: "USD", releaseCondition: "done" };
      const obligations = {
        payer: { party: payer.uri, action: "Pay." },
        worker: { party: worker.uri, action: "Work." },
      };
      const lines: Said[] = [
        [
          payer,
          "COMMIT",
          { commitmentId: "cmt", type: "agreement", subject: "s", terms: {}, obligations, escrow },
        ],
        [worker, "ACCEPT", { referenceId: "cmt" }],
        [worker, "INFORM", { informType: "result", references: ["cmt"] }],
      ];
      await session(payer, worker, lines, { outcome: "fulfilled" });
    }
  }
  for (const one of SYBILS) {
    // In each round an agent completes two sessions with a fulfilled commitment, pays in one, and gets two ratings.
    await recorded(one, 5 * rounds);
    const { score, level } = await trustOf(one);
    expect(score).toBeGreaterThan(10);
    expect(score).toBeLessThan(QUARTER);
    expect(level).toBe(0);
  }
});
