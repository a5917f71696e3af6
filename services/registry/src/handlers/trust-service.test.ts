import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { SessionResult } from "@depute/contracts/depute/registry/v1/trust_service_pb";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { capability } from "../testing/capability.ts";
import { ALICE, as, BOB, CAROL, DAVE, type Platform, startPlatform } from "../testing/platform.ts";
import { refusal } from "../testing/refusal.ts";
import { type Signer, signer, signStatement } from "../testing/statement.ts";

const DAY = 86_400_000;
/** The operator that may record proofs of organizations. */
const OPERATOR = DAVE;
let platform: Platform;
let operator: Signer;
let requests = 0;
const newId = () => `id-${++requests}`;

async function register(id: string, principal: string, parts: Record<string, unknown> = {}) {
  const agent = { id, principal, ...parts };
  await platform.agents.registerAgent({ requestId: newId(), agent }, as(principal));
  await platform.agents.publishCapabilities(
    { requestId: newId(), agentId: id, capabilities: [capability("sum")] },
    as(principal),
  );
}
type Kind = Record<string, unknown> & { case: string };
const evidence = (kind: Kind, agentId = "alpha", counterpartAgentId = "beta") =>
  ({ agentId, counterpartAgentId, kind }) as never;
const attested = (success = true, parts: Record<string, unknown> = {}): Kind => ({
  case: "attestation",
  value: {
    attestationId: "att_0123456789ab",
    success,
    quality: 1,
    duration: durationFromMs(1_000),
    ...parts,
  },
});
const session = (result: SessionResult, severity = 0, parts: Record<string, unknown> = {}): Kind => ({
  case: "session",
  value: { sessionId: "s1", result, severity, staked: true, ...parts },
});
const rating = (stars: number, reference = "s1"): Kind => ({ case: "rating", value: { reference, stars } });
const endorsement: Kind = { case: "endorsement", value: {} };
const record = (each: never, caller = "", evidenceId = newId()) =>
  platform.trust.recordEvidence({ evidenceId, evidence: each }, caller === "" ? {} : as(caller));
const trust = (agentId = "alpha", counterpartAgentId = "", caller = "") =>
  platform.trust.getTrust({ agentId, counterpartAgentId }, caller === "" ? {} : as(caller));
const imported = (
  components: Record<string, unknown>,
  key = operator,
  more: Record<string, unknown> = {},
) => {
  const claims = {
    sub: "alpha",
    aud: platform.publicUrl,
    iat: platform.clock.now() / 1000,
    components,
    ...more,
  };
  const statement = signStatement(key, claims, { typ: "depute-trust+jwt" });
  return evidence({ case: "signedImport", value: { statement } }, "alpha", "");
};

beforeEach(async () => {
  operator = signer();
  platform = await startPlatform(["--trust-operators", `${operator.principal},${OPERATOR}`]);
  await register("alpha", ALICE, { organization: "acme" });
  await register("beta", BOB);
  await register("gamma", CAROL, { organization: "acme" });
});

/** Creates a proof of an organization as the operator; returns the proof's id. */
async function prove(organization: string, principal: string) {
  const request = { requestId: newId(), organization, principal };
  const { proof } = await platform.organizations.createOrganizationProof(request, as(OPERATOR));
  return proof?.id ?? "";
}
afterEach(() => platform.stop());

describe("trust", () => {
  it("starts with the proven key only", async () => {
    const { overall, bayesian, pair } = await trust();
    expect(overall).toMatchObject({ score: 10, level: 0, evidenceCount: 0n });
    expect(overall?.components).toMatchObject({ identityVerification: 50, commitmentFulfillment: 0 });
    expect(bayesian).toMatchObject({ score: 0.5, confidence: 0 });
    expect(pair).toBeUndefined();
  });

  it("grows with outcomes, overall and for the pair, and explains each step", async () => {
    const first = (await record(evidence(attested()))).entry;
    const second = (await record(evidence(session(SessionResult.COMPLETED), "alpha", "gamma"))).entry;
    expect(first?.scoreBefore).toBeCloseTo(10, 9);
    expect(first?.changes.map(({ component }) => component)).toEqual([
      "communicationHistory",
      "commitmentFulfillment",
      "behavioralConsistency",
      "responseQuality",
    ]);
    expect(second?.scoreBefore).toBeCloseTo(first?.scoreAfter ?? 0, 9);
    const { overall, pair, bayesian, pairBayesian } = await trust("alpha", "gamma");
    expect(overall?.score).toBeCloseTo(second?.scoreAfter ?? 0, 9);
    expect(overall?.evidenceCount).toBe(2n);
    expect(pair?.evidenceCount).toBe(1n);
    expect(pair?.score).toBeLessThan(overall?.score ?? 0);
    expect(bayesian?.confidence).toBeCloseTo(0.1, 9);
    expect(pairBayesian?.confidence).toBe(0);
    const { entries } = await platform.trust.explainTrust({ agentId: "alpha" });
    expect(entries).toEqual([second, first]);
  });

  it("falls sharply after a breach, and slowly with idle time", async () => {
    const high = { identityVerification: 50, commitmentFulfillment: 60, behavioralConsistency: 60 };
    await record(imported(high));
    const before = (await trust()).overall?.score ?? 0;
    const { entry } = await record(evidence(session(SessionResult.BREACHED, 4)));
    expect(entry?.scoreAfter).toBeLessThan(before - 5);
    platform.clock.advance(210 * DAY);
    const faded = (await trust()).overall?.score ?? 0;
    expect(faded - 10).toBeCloseTo(((entry?.scoreAfter ?? 0) - 10) / 2, 6);
  });

  it("of an instance is its base's", async () => {
    await record(evidence(attested(), "alpha:1", "beta:7"));
    const expected = await trust();
    expect(expected.overall?.evidenceCount).toBe(1n);
    expect((await trust("alpha:1")).overall).toEqual(expected.overall);
  });

  it("survives a restart", async () => {
    await record(evidence(attested()));
    const before = await trust("alpha", "beta");
    await platform.restart();
    expect(await trust("alpha", "beta")).toEqual(before);
  });
});

describe("RecordEvidence", () => {
  it("counts evidence once for its id", async () => {
    const first = await record(evidence(attested()), "", "same");
    expect(await record(evidence(attested()), "", "same")).toEqual(first);
    expect((await trust()).overall?.evidenceCount).toBe(1n);
    expect(await refusal(record(evidence(attested(false)), "", "same"))).toMatchObject({
      reason: "EVIDENCE_EXISTS",
      metadata: { evidence: "same" },
    });
  });

  it.each<[string, () => never, string, Record<string, unknown>]>([
    ["an outcome that an agent reports", () => evidence(attested()), BOB, { reason: "CALLER_NOT_ALLOWED" }],
    [
      "an agent's own evidence",
      () => evidence(attested(), "alpha", "alpha"),
      "",
      { reason: "INVALID_REQUEST" },
    ],
    [
      "its instance's evidence",
      () => evidence(attested(), "alpha", "alpha:1"),
      "",
      { reason: "INVALID_REQUEST" },
    ],
    ["an unknown agent", () => evidence(attested(), "nobody"), "", { reason: "AGENT_NOT_FOUND" }],
    [
      "an unknown counterpart",
      () => evidence(attested(), "alpha", "nobody"),
      "",
      { reason: "AGENT_NOT_FOUND" },
    ],
    ["a rating without an outcome", () => evidence(rating(5)), BOB, { reason: "INVALID_REQUEST" }],
    ["a rating in another agent's name", () => evidence(rating(5)), CAROL, { reason: "CALLER_NOT_ALLOWED" }],
    ["six stars", () => evidence(rating(6)), BOB, { reason: "INVALID_REQUEST" }],
    ["an endorser without trust", () => evidence(endorsement), BOB, { reason: "INVALID_REQUEST" }],
    [
      "another principal's import",
      () => imported({ securityPosture: 9 }, signer()),
      ALICE,
      { reason: "SIGNATURE_INVALID" },
    ],
    [
      "an import for another agent",
      () => imported({}, operator, { sub: "b" }),
      ALICE,
      { reason: "SIGNATURE_INVALID" },
    ],
    ["an old import", () => imported({}, operator, { iat: 1 }), ALICE, { reason: "SIGNATURE_INVALID" }],
    ["an empty import", () => imported({}), ALICE, { reason: "INVALID_REQUEST" }],
    [
      "an import out of bounds",
      () => imported({ securityPosture: 101 }),
      ALICE,
      { reason: "INVALID_REQUEST" },
    ],
    ["an import of an unknown component", () => imported({ fame: 1 }), ALICE, { reason: "INVALID_REQUEST" }],
  ])("refuses %s, and changes nothing", async (_, make, caller, expected) => {
    expect(await refusal(record(make(), caller))).toMatchObject(expected);
    expect((await trust()).overall?.evidenceCount).toBe(0n);
  });

  it("refuses the evidence of another agent of the same principal", async () => {
    await register("sybil", ALICE);
    const call = record(evidence(attested(), "alpha", "sybil"));
    expect(await refusal(call)).toMatchObject({
      reason: "INVALID_REQUEST",
      fields: ["evidence.counterpart_agent_id"],
    });
  });

  it("accepts one rating of each outcome, from the counterpart", async () => {
    await record(evidence(session(SessionResult.COMPLETED)));
    await prove("org:beta", BOB);
    const { entry } = await record(evidence(rating(5)), BOB);
    expect(entry?.scoreAfter).toBeGreaterThan(entry?.scoreBefore ?? 100);
    expect(entry?.recordedBy).toBe(BOB);
    expect(await refusal(record(evidence(rating(5)), BOB))).toMatchObject({ reason: "INVALID_REQUEST" });
  });

  it("records an operator's import, and lets trusted agents endorse agents of other owners", async () => {
    const all = { identityVerification: 100, commitmentFulfillment: 80, communicationHistory: 80 };
    const { entry } = await record(imported(all), CAROL);
    expect(entry).toMatchObject({ recordedBy: CAROL, scoreAfter: 20 + 16 + 12 });
    const recorded = await record(evidence(endorsement, "beta", "alpha"), ALICE);
    expect(recorded.entry?.scoreAfter).toBeGreaterThan(recorded.entry?.scoreBefore ?? 100);
    await prove("acme", ALICE);
    await prove("acme", CAROL);
    expect(await refusal(record(evidence(endorsement, "gamma", "alpha"), ALICE))).toMatchObject({
      reason: "INVALID_REQUEST",
      fields: ["evidence.counterpart_agent_id"],
    });
    expect(await refusal(record(evidence(endorsement, "beta", "alpha"), ALICE))).toMatchObject({
      reason: "INVALID_REQUEST",
    });
  });
});

describe("the worth of evidence", () => {
  const growth = ({ entry }: Awaited<ReturnType<typeof record>>) =>
    (entry?.scoreAfter ?? 0) - (entry?.scoreBefore ?? 0);

  it("depends on the witness: at most a tenth without a proof, full with one", async () => {
    const stranger = await record(evidence(attested()));
    await prove("org:gamma", CAROL);
    const proven = await record(evidence(attested(), "alpha", "gamma"));
    expect(stranger.entry).toMatchObject({ standing: 0.1, witnessAgentId: "beta" });
    expect(proven.entry).toMatchObject({ standing: 1, witnessAgentId: "gamma" });
    expect(growth(stranger)).toBeGreaterThan(0);
    expect(growth(stranger)).toBeLessThan(growth(proven) / 5);
  });

  it("is that of an independent verifier, not of a party's own", async () => {
    await register("auditor", CAROL);
    await register("alphas-other", ALICE);
    await prove("org:audit", CAROL);
    const by = (verifierAgentId: string) => record(evidence(attested(true, { verifierAgentId })));
    expect((await by("auditor")).entry).toMatchObject({ standing: 1, witnessAgentId: "auditor" });
    await prove("org:alpha", ALICE);
    for (const otherAgent of ["alphas-other", "beta", "unknown"]) {
      expect((await by(otherAgent)).entry).toMatchObject({ standing: 0.1, witnessAgentId: "beta" });
    }
  });

  it("shrinks with each repetition by one owner, across its agents", async () => {
    await register("betas-other", BOB);
    await prove("org:beta", BOB);
    const gains = [];
    for (const by of ["beta", "betas-other", "beta:1"]) {
      gains.push(growth(await record(evidence(attested(), "alpha", by))));
    }
    const [first = 0, second = 0, third = 0] = gains;
    expect(second).toBeLessThan(first / 2);
    expect(third).toBeLessThan(second);
  });

  it("is zero without a stake or a verified result, and such work cannot be rated", async () => {
    await prove("org:beta", BOB);
    const empty = [
      session(SessionResult.COMPLETED, 0, { staked: false }),
      session(SessionResult.FULFILLED, 0, { staked: false }),
      attested(true, { quality: undefined }),
    ];
    for (const each of empty) {
      const { entry } = await record(evidence(each));
      expect([entry?.changes, entry?.scoreAfter]).toEqual([[], 10]);
    }
    expect(await refusal(record(evidence(rating(5)), BOB))).toMatchObject({
      reason: "INVALID_REQUEST",
      fields: ["evidence.rating.reference"],
    });
  });

  it("is refused between principals of one proven organization, not of one named organization", async () => {
    await record(evidence(attested(), "alpha", "gamma"));
    await prove("acme", ALICE);
    const id = await prove("acme", CAROL);
    expect(await refusal(record(evidence(attested(), "alpha", "gamma")))).toMatchObject({
      reason: "INVALID_REQUEST",
      fields: ["evidence.counterpart_agent_id"],
    });
    await platform.organizations.revokeOrganizationProof({ requestId: newId(), proofId: id }, as(OPERATOR));
    await record(evidence(attested(), "alpha", "gamma"));
  });

  it("keeps sybils below a quarter of the way to level 2", async () => {
    const sybils = Array.from({ length: 5 }, (_, i) => ({ id: `sybil-${i}`, key: signer().principal }));
    for (const { id, key } of sybils) {
      const agent = { id, principal: key, organization: `org:${id}` };
      await platform.agents.registerAgent({ requestId: newId(), agent });
    }
    const { COMPLETED, FULFILLED, PAID } = SessionResult;
    const praise = async (subject: string, counterpart: string, round: number) => {
      const outcome = { sessionId: `${subject}-${counterpart}-${round}` };
      for (const result of [COMPLETED, FULFILLED, PAID]) {
        await record(evidence(session(result, 0, outcome), subject, counterpart));
      }
      await record(evidence(rating(5, outcome.sessionId), subject, counterpart));
      await record(evidence(attested(), subject, counterpart));
    };
    await Promise.all(
      sybils.map(async ({ id }, i) => {
        for (let round = 0; round < 8; round++) {
          await praise(id, sybils[(i + 1 + (round % 4)) % 5]?.id ?? "", round);
        }
      }),
    );
    for (const { id } of sybils) {
      const { overall, bayesian } = await trust(id);
      expect(overall?.evidenceCount).toBe(40n);
      expect(overall?.score).toBeGreaterThan(10);
      expect(overall?.score).toBeLessThan(20);
      expect(bayesian?.score).toBeLessThanOrEqual(0.55);
    }
    expect(await refusal(record(evidence(endorsement, "sybil-0", "sybil-1")))).toMatchObject({
      reason: "INVALID_REQUEST",
    });
  });
});

describe("access to trust", () => {
  it("gives a pair's trust to its two parties", async () => {
    await record(evidence(attested()));
    for (const caller of [ALICE, BOB]) expect((await trust("alpha", "beta", caller)).pair).toBeDefined();
    expect(await refusal(trust("alpha", "beta", CAROL))).toMatchObject({ reason: "CALLER_NOT_ALLOWED" });
    expect((await trust("alpha", "", CAROL)).overall?.evidenceCount).toBe(1n);
  });

  it("returns all evidence to the agent, and to others the evidence that they recorded", async () => {
    await record(evidence(attested()));
    await record(evidence(attested(), "alpha", "gamma"));
    const read = async (caller: string) =>
      (await platform.trust.explainTrust({ agentId: "alpha" }, as(caller))).entries.map(
        ({ evidence: each }) => each?.counterpartAgentId,
      );
    expect(await read(ALICE)).toEqual(["gamma", "beta"]);
    expect(await read(BOB)).toEqual(["beta"]);
    const first = await platform.trust.explainTrust({ agentId: "alpha", pageSize: 1 }, as(ALICE));
    const restPage = await platform.trust.explainTrust(
      { agentId: "alpha", pageSize: 1, pageToken: first.nextPageToken },
      as(ALICE),
    );
    expect(restPage.entries.map(({ sequence }) => sequence)).toEqual([1n]);
    expect(restPage.nextPageToken).toBe("");
  });
});

describe("discovery by trust", () => {
  it("returns agents whose current score reaches the threshold, as in GetTrust", async () => {
    for (let i = 0; i < 5; i++) await record(evidence(attested()));
    const agentsAbove = async (minTrust: number) =>
      (await platform.discovery.discoverCapabilities({ minTrust })).capabilities.map(
        ({ agentId }) => agentId,
      );
    const score = (await trust()).overall?.score ?? 0;
    expect(await agentsAbove(0)).toEqual(["alpha", "beta", "gamma"]);
    expect(await agentsAbove(10)).toEqual(["alpha", "beta", "gamma"]);
    expect(await agentsAbove(score - 0.001)).toEqual(["alpha"]);
    expect(await agentsAbove(score + 0.001)).toEqual([]);
    platform.clock.advance(400 * DAY);
    const faded = (await trust()).overall?.score ?? 0;
    expect(faded).toBeLessThan(score);
    expect(await agentsAbove(score - 0.001)).toEqual([]);
    expect(await agentsAbove(faded - 0.001)).toEqual(["alpha"]);
  });
});
