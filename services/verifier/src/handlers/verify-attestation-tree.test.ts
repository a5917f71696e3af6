import { createHash, createPublicKey, verify } from "node:crypto";
import { AttestationStep, TreeOutcome } from "@depute/contracts/depute/verifier/v1/attestation_service_pb";
import { DecompositionMode } from "@depute/contracts/depute/verifier/v1/contract_service_pb";
import { createRevocation, type Keypair, newId, parseToken, revocationIds } from "@depute/dct";
import { afterAll, beforeAll, expect, test } from "vitest";
import { toMessage } from "../documents.ts";
import type { Attestation } from "../rules/documents.ts";
import {
  delegator,
  engine,
  hashedOutput,
  signedCompletion,
  signedContract,
  worker,
} from "../testing/contracts.ts";
import { fakeTokens } from "../testing/fake-tokens.ts";
import { message, type Platform, refusal, startPlatform, value } from "../testing/platform.ts";

const tokens = fakeTokens();
let platform: Platform;
beforeAll(async () => {
  platform = await startPlatform([], tokens);
});
afterAll(() => platform.stop());

async function record(attestation: Attestation): Promise<Attestation> {
  await platform.attestations.recordAttestation({ attestation: toMessage("attestation", attestation) });
  return attestation;
}

const mint = (contractId: string, delegationId: string, delegatee = worker) =>
  tokens.mint({
    delegatee: delegatee.principal.id,
    contractId,
    capabilities: [{ namespace: "docs", action: "read", resource: "**" }],
    maxBudgetMicrocents: 1000,
    maxChainDepth: 2,
    delegationId,
  });

/** Records an attestation of a completion, with the current time and a new delegation. */
async function work(contractId: string, change: Partial<Attestation> = {}, by: Keypair = worker) {
  const delegationId = newId("del");
  const createdAt = new Date(platform.clock.now()).toISOString();
  const attestation = await record(signedCompletion(contractId, { delegationId, createdAt, ...change }, by));
  return { attestation, token: mint(contractId, delegationId, by) };
}

const cost = (costMicrocents: number) => ({
  result: { success: true, output: { label: "good" }, costMicrocents, durationMs: 1 },
});

const nameOf = (words: Record<string, number>, value: number) =>
  Object.entries(words).find(([, number]) => number === value)?.[0];

async function faults(id: string, sentTokens: { token: string; format: string }[]) {
  const { valid, nodes } = await platform.attestations.verifyAttestationTree({
    attestationId: id,
    tokens: sentTokens,
  });
  const findingLines = nodes.flatMap(({ attestationId, findings }) =>
    findings.map(({ step, outcome }) => [
      attestationId,
      nameOf(AttestationStep, step),
      nameOf(TreeOutcome, outcome),
    ]),
  );
  expect(valid).toBe(findingLines.length === 0);
  return findingLines;
}

test("verifies a tree of work and its parts", async () => {
  const parent = await platform.agree();
  const part = signedContract({ maxBudgetMicrocents: 300, maxChainDepth: 1 });
  await platform.contracts.decomposeContract({
    parentId: parent.id,
    mode: DecompositionMode.PARALLEL,
    parts: [{ contract: message(part) }],
  });
  const leaves = [await work(part.id, cost(100)), await work(part.id, cost(200))];
  const root = await work(parent.id, {
    ...cost(700),
    childAttestations: leaves.map(({ attestation }) => attestation.id),
  });
  const sentTokens = [root, ...leaves].map(({ token }) => token);
  expect(await faults(root.attestation.id, sentTokens)).toEqual([]);
  const { nodes } = await platform.attestations.verifyAttestationTree({
    attestationId: root.attestation.id,
    tokens: sentTokens,
  });
  expect(nodes.map(({ depth, totalCostMicrocents }) => [depth, totalCostMicrocents])).toEqual([
    [0, 1000n],
    [1, 100n],
    [1, 200n],
  ]);
});

test.each([
  ["retired later, by a token that is older than the attestation", "before", "token", 2, []],
  ["retired later, by such a record", "before", "record", 2, []],
  ["had retired", "before", "token", 0, ["AUTHORITY", "FAILED"]],
  ["had retired, by a record", "before", "record", 0, ["AUTHORITY", "FAILED"]],
  ["retired later, by a token that nobody recorded", "never", "token", 2, ["AUTHORITY", "INCONCLUSIVE"]],
  ["retired later, by a token recorded after it", "after", "token", 2, ["AUTHORITY", "INCONCLUSIVE"]],
  ["retired later, by a record after it", "after", "record", 2, ["AUTHORITY", "INCONCLUSIVE"]],
  ["retired later, by another token of a recorded id", "other", "token", 2, ["AUTHORITY", "INCONCLUSIVE"]],
])("an attestation under a root that %s", async (_, recorded, proof, retireLater, finding) => {
  const contract = await platform.agree();
  const delegationId = newId("del");
  const token = mint(contract.id, delegationId);
  if (recorded === "before") tokens.record(token);
  if (recorded === "other") tokens.record(mint(contract.id, delegationId, delegator));
  const attestTime = platform.clock.now();
  const createdAt = new Date(attestTime).toISOString();
  const attestation = await record(signedCompletion(contract.id, { delegationId, createdAt }));
  platform.clock.advance(1);
  if (recorded === "after") tokens.record(token);
  tokens.retire(attestTime + retireLater);
  const found = await faults(attestation.id, proof === "token" ? [token] : []);
  tokens.retire(undefined);
  expect(found).toEqual(finding.length === 0 ? [] : [[attestation.id, ...finding]]);
});

test("three costs are within their budgets, but their sum exceeds the root's", async () => {
  const contract = await platform.agree();
  const leaf = await work(contract.id, cost(400));
  const middle = await work(contract.id, { ...cost(400), childAttestations: [leaf.attestation.id] });
  const root = await work(contract.id, { ...cost(400), childAttestations: [middle.attestation.id] });
  expect(
    await faults(
      root.attestation.id,
      [root, middle, leaf].map(({ token }) => token),
    ),
  ).toEqual([[root.attestation.id, "BUDGET", "FAILED"]]);
});

test("a cost that the worker and its verifier both state counts once", async () => {
  const contract = await platform.agree();
  const leaf = await work(contract.id, cost(900));
  const checked = await record(
    signedCompletion(
      contract.id,
      {
        ...cost(900),
        type: "delegation_verification",
        delegationId: leaf.attestation.delegationId,
        createdAt: leaf.attestation.createdAt,
        childAttestations: [leaf.attestation.id],
      },
      delegator,
    ),
  );
  expect(await faults(checked.id, [leaf.token])).toEqual([]);
});

test("reports a deep fault at its node", async () => {
  const contract = await platform.agree();
  const bad = { result: { success: true, output: { label: 1 }, costMicrocents: 1, durationMs: 1 } };
  const leaf = await work(contract.id, bad);
  const root = await work(contract.id, { ...cost(1), childAttestations: [leaf.attestation.id] });
  expect(await faults(root.attestation.id, [root.token, leaf.token])).toEqual([
    [leaf.attestation.id, "VERIFICATION", "FAILED"],
  ]);
});

test("accepts a hash instead of an output only if the verifier attested that output", async () => {
  const contract = await platform.agree();
  const hashed = (label: unknown) => ({
    success: true,
    outputHash: hashedOutput({ label }),
    costMicrocents: 1,
    durationMs: 1,
  });
  const leaf = await work(contract.id, { result: hashed("good") });
  const alone = leaf.attestation.id;
  expect(await faults(alone, [leaf.token])).toEqual([
    [alone, "OUTPUT", "INCONCLUSIVE"],
    [alone, "VERIFICATION", "INCONCLUSIVE"],
  ]);
  const verified = async (label: unknown) => {
    const { attestation } = await platform.attestations.attestOutput({
      requestId: `tree ${String(label)}`,
      contractId: contract.id,
      delegationId: leaf.attestation.delegationId,
      output: value({ label: label as string }),
      costMicrocents: 1n,
      childAttestations: [alone],
    });
    return attestation?.id ?? "";
  };
  expect(await faults(await verified("good"), [leaf.token])).toEqual([]);
  const other = await verified("other");
  expect(await faults(other, [leaf.token])).toEqual([
    [alone, "OUTPUT", "INCONCLUSIVE"],
    [alone, "VERIFICATION", "INCONCLUSIVE"],
  ]);
});

test("a signer needs a token that was valid when the attestation was recorded", async () => {
  const contract = await platform.agree();
  const fine = await work(contract.id);
  const id = fine.attestation.id;
  expect(await faults(id, [])).toEqual([[id, "AUTHORITY", "INCONCLUSIVE"]]);
  const others = mint(contract.id, fine.attestation.delegationId, delegator);
  expect(await faults(id, [others])).toEqual([[id, "AUTHORITY", "FAILED"]]);
  const elsewhere = mint((await platform.agree()).id, fine.attestation.delegationId);
  expect(await faults(id, [elsewhere])).toEqual([[id, "AUTHORITY", "FAILED"]]);

  // Two hours later the token has expired, but attestations recorded before its expiry stay valid.
  platform.clock.advance(2 * 3_600_000);
  expect(await faults(id, [fine.token])).toEqual([]);
  const late = await record(
    signedCompletion(contract.id, {
      delegationId: fine.attestation.delegationId,
      createdAt: fine.attestation.createdAt,
    }),
  );
  expect(await faults(late.id, [fine.token])).toEqual([[late.id, "AUTHORITY", "FAILED"]]);
});

test("attestations recorded before a revocation stay valid, later ones do not", async () => {
  const contract = await platform.agree();
  const before = await work(contract.id);
  platform.clock.advance(1000);
  const parsed = parseToken(before.token);
  if (!parsed.ok) throw new Error("no token");
  const [block = ""] = revocationIds(engine, parsed.token);
  tokens.revoke(createRevocation(engine, block, "block", worker, platform.clock.now()));
  platform.clock.advance(1000);
  const { delegationId } = before.attestation;
  const createdAt = new Date(platform.clock.now()).toISOString();
  const after = await record(signedCompletion(contract.id, { delegationId, createdAt }));
  expect(await faults(before.attestation.id, [before.token])).toEqual([]);
  expect(await faults(after.id, [before.token])).toEqual([[after.id, "AUTHORITY", "FAILED"]]);
});

test("without a token, the tokens service's record of the delegation counts", async () => {
  const contract = await platform.agree();
  const fine = await work(contract.id);
  const { id, delegationId } = fine.attestation;
  tokens.record(fine.token);
  expect(await faults(id, [])).toEqual([]);

  const others = await work(contract.id);
  tokens.record(mint(contract.id, others.attestation.delegationId, delegator));
  expect(await faults(others.attestation.id, [])).toEqual([[others.attestation.id, "AUTHORITY", "FAILED"]]);
  const elsewhere = await work(contract.id);
  tokens.record(mint((await platform.agree()).id, elsewhere.attestation.delegationId));
  expect(await faults(elsewhere.attestation.id, [])).toEqual([
    [elsewhere.attestation.id, "AUTHORITY", "FAILED"],
  ]);

  const again = async () => {
    const createdAt = new Date(platform.clock.now()).toISOString();
    return (await record(signedCompletion(contract.id, { delegationId, createdAt }))).id;
  };
  platform.clock.advance(1000);
  const parsed = parseToken(fine.token);
  if (!parsed.ok) throw new Error("no token");
  const [block = ""] = revocationIds(engine, parsed.token);
  tokens.revoke(createRevocation(engine, block, "block", worker, platform.clock.now()));
  const afterRevocation = await again();
  expect(await faults(id, [])).toEqual([]);
  expect(await faults(afterRevocation, [])).toEqual([[afterRevocation, "AUTHORITY", "FAILED"]]);

  const lasting = await work(contract.id);
  tokens.record(lasting.token);
  platform.clock.advance(2 * 3_600_000);
  expect(await faults(lasting.attestation.id, [])).toEqual([]);
  const late = await record(
    signedCompletion(contract.id, {
      delegationId: lasting.attestation.delegationId,
      createdAt: lasting.attestation.createdAt,
    }),
  );
  expect(await faults(late.id, [])).toEqual([[late.id, "AUTHORITY", "FAILED"]]);
});

test("refuses a tree beyond its limits", async () => {
  const contract = await platform.agree();
  let { id } = (await work(contract.id, cost(1))).attestation;
  for (let i = 0; i < 32; i++)
    ({ id } = (await work(contract.id, { ...cost(1), childAttestations: [id] })).attestation);
  expect(await refusal(platform.attestations.verifyAttestationTree({ attestationId: id }))).toMatchObject({
    reason: "LIMIT_EXCEEDED",
    metadata: { limit: "tree_levels", max: "32" },
  });
  expect(
    await refusal(platform.attestations.verifyAttestationTree({ attestationId: "att_000000000000" })),
  ).toMatchObject({
    reason: "ATTESTATION_NOT_FOUND",
  });
});

test("an export verifies with Node's crypto and the DSSE encoding", async () => {
  const contract = await platform.agree();
  const { attestation } = await work(contract.id);
  const { json } = await platform.attestations.exportAttestation({ attestationId: attestation.id });
  const envelope = JSON.parse(json);
  const { principal } = await platform.attestations.getVerifier({});
  const key = createPublicKey({ key: { kty: "OKP", crv: "Ed25519", x: principal }, format: "jwk" });
  const payload = Buffer.from(envelope.payload, "base64");
  const pae = Buffer.concat([
    Buffer.from(`DSSEv1 ${envelope.payloadType.length} ${envelope.payloadType} ${payload.length} `),
    payload,
  ]);
  const [{ keyid, sig }] = envelope.signatures;
  expect(keyid).toBe(principal);
  expect(verify(null, pae, key, Buffer.from(sig, "base64"))).toBe(true);
  expect(verify(null, Buffer.concat([pae, Buffer.of(32)]), key, Buffer.from(sig, "base64"))).toBe(false);
  expect(JSON.parse(payload.toString())).toMatchObject({
    _type: "https://in-toto.io/Statement/v1",
    predicateType: "https://depute.dev/delegateos/attestation/v0.1",
    subject: [{ name: "output" }, { name: contract.id }],
    predicate: attestation,
  });
  const output = createHash("sha256").update(JSON.stringify(attestation.result.output)).digest("hex");
  expect(JSON.parse(payload.toString()).subject[0].digest.sha256).toBe(output);
});
