import { AttestationService } from "@depute/contracts/depute/verifier/v1/attestation_service_pb";
import { ContractService } from "@depute/contracts/depute/verifier/v1/contract_service_pb";
import { VerificationService } from "@depute/contracts/depute/verifier/v1/verification_service_pb";
import { ErrorReason } from "@depute/core";
import { fromConnectError, HOP } from "@depute/service";
import { as, startTestHost, type TestHost, TickingClock } from "@depute/service/testing";
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from "vitest";
import { toMessage } from "../documents.ts";
import { verifier } from "../index.ts";
import { hashedOutput, signedCompletion, signedContract } from "../testing/contracts.ts";
import { fakeTokens } from "../testing/fake-tokens.ts";
import { doublingSchema, SLOW_VALUE } from "../testing/hostile.ts";
import { message, value } from "../testing/platform.ts";

// The threads that run checks have a low priority, so on a busy machine the checks take long.
vi.setConfig({ testTimeout: 120_000 });

const ORGANIZATIONS = { "acme-1": "acme", "acme-2": "acme", "acme-3": "acme", globex: "globex" };
/** Milliseconds of processor time that a principal may use in each second. An organization may use twice as many. */
const CPU_MS = 50;

/** A verifier service whose clock does not advance by itself, so that the quotas do not recover. */
let host: TestHost;
beforeAll(async () => {
  host = await startTestHost({
    module: verifier,
    args: ["--verifier-check-timeout", "5s"],
    commonArgs: [
      ...["--quota-verification-cpu", String(CPU_MS), "--quota-organization-factor", "2"],
      ...["--internal-secret", "between-ourselves"],
    ],
    principals: ["ada", "bob", "cy", "dee", ...Object.keys(ORGANIZATIONS)],
    organizations: ORGANIZATIONS,
  });
}, 60_000);
afterAll(() => host.stop());
beforeEach(() => host.clock.advance(3_600_000));

const used = (owner: string) => ({
  reason: ErrorReason.LIMIT_EXCEEDED,
  metadata: {
    limit: `${owner}_verification_cpu_ms_per_second`,
    retry_after_ms: expect.stringMatching(/^\d+$/),
  },
});
/** A schema whose compilation takes a worker thread a few milliseconds. Different names give different schemas. */
const wideSchema = (name: string) =>
  value({
    type: "object",
    properties: Object.fromEntries(
      Array.from({ length: 100 }, (_, i) => [
        `${name}${i}`,
        { type: "string", pattern: `^${name}[a-z]{1,9}$` },
      ]),
    ),
  });
const outcomeOf = (call: Promise<unknown>) => call.then(() => "served" as const, fromConnectError);
const checkWide = (options: object, name: string) =>
  outcomeOf(
    host.client(VerificationService).checkSchema({ schema: wideSchema(name), value: value({}) }, options),
  );

async function untilRefused(call: (i: number) => Promise<unknown>, max = 200) {
  for (let i = 0; i < max; i++) {
    const outcome = await call(i);
    if (outcome !== "served") return outcome;
  }
  throw new Error("no call was refused");
}

test("a caller pays for its checks in threads, and another caller is served", async () => {
  expect(await untilRefused((i) => checkWide(as("ada"), `a${i}x`))).toMatchObject(used("principal"));
  expect(await checkWide(as("bob"), "b")).toBe("served");
});

test("a check that was stopped at its limit counts too", async () => {
  const endless = { schema: value(doublingSchema() as never), value: value(SLOW_VALUE) };
  const stopped = host.client(VerificationService).checkSchema(endless, as("cy"));
  expect(await outcomeOf(stopped)).toMatchObject({ reason: ErrorReason.CHECK_TIMEOUT });
  expect(await untilRefused((i) => checkWide(as("cy"), `c${i}x`))).toMatchObject(used("principal"));
});

test("the members of an organization share its quota, and another organization is not disturbed", async () => {
  const members = ["acme-1", "acme-2", "acme-3"];
  const refusals = new Set<string>();
  for (let i = 0; i < 200 && refusals.size === 0; i++)
    for (const member of members) {
      const outcome = await checkWide(as(member), `o${i}${member.at(-1)}x`);
      if (outcome !== "served") refusals.add(outcome.metadata.limit ?? "");
    }
  expect([...refusals]).toContainEqual(expect.stringMatching(/_verification_cpu_ms_per_second$/));
  expect(await checkWide(as("globex"), "g")).toBe("served");
});

test("a check by a service counts for the caller of the service's call", async () => {
  const onBehalfOf = (principal: string) => ({
    headers: { [HOP.internal]: "between-ourselves", [HOP.origin]: "service", [HOP.onBehalfOf]: principal },
  });
  expect(await untilRefused((i) => checkWide(onBehalfOf("dee"), `d${i}x`))).toMatchObject(used("principal"));
  expect(await checkWide(as("dee"), "e")).toMatchObject(used("principal"));
  expect(await checkWide(onBehalfOf("eve"), "f")).toBe("served");
});

test("`local` and the platform's own work have no quota", async () => {
  const own = { headers: { [HOP.internal]: "between-ourselves", [HOP.origin]: "service" } };
  for (let i = 0; i < 8; i++) {
    expect(await checkWide({}, `l${i}x`)).toBe("served");
    expect(await checkWide(own, `s${i}x`)).toBe("served");
  }
});

describe("the signatures", () => {
  let small: TestHost<TickingClock>;
  const contract = signedContract();
  // The attestation has only the hash of its output, so its verification costs only the check of the signature.
  const result = { success: true, outputHash: hashedOutput(1), costMicrocents: 1, durationMs: 1 };
  const stored = toMessage("attestation", signedCompletion(contract.id, { result }));
  beforeAll(async () => {
    small = await startTestHost({
      ...{ module: verifier, fakes: [fakeTokens().module] },
      commonArgs: ["--quota-verification-cpu", "2"],
      principals: ["ada", "bob"],
      clock: new TickingClock(0.05),
    });
    await small.client(ContractService).createContract({ contract: message(contract) });
    await small.client(AttestationService).recordAttestation({ attestation: stored });
  }, 60_000);
  afterAll(() => small.stop());
  beforeEach(() => small.clock.advance(3_600_000));

  test.each<[string, (options: object) => Promise<unknown>]>([
    [
      "an attestation",
      (options) =>
        small
          .client(AttestationService)
          .verifyAttestation({ subject: { case: "attestation", value: stored } }, options),
    ],
    [
      "a tree",
      (options) =>
        small.client(AttestationService).verifyAttestationTree({ attestationId: stored.id }, options),
    ],
    [
      "a stored document",
      (options) => {
        const attestation = toMessage("attestation", signedCompletion(contract.id, { result }));
        return small.client(AttestationService).recordAttestation({ attestation }, options);
      },
    ],
  ])("of %s count for the caller alone", async (_, call) => {
    expect(await untilRefused(() => outcomeOf(call(as("ada"))), 500)).toMatchObject(used("principal"));
    expect(await outcomeOf(call(as("bob")))).toBe("served");
  });
});
