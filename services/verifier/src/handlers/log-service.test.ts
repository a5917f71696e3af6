import { createHash } from "node:crypto";
import { createRevocation } from "@depute/dct";
import {
  documentDigest,
  leafHash,
  verifyConsistency,
  verifyInclusion,
  verifyLogHead,
} from "@depute/dct/transparency";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { toDocument, toMessage } from "../documents.ts";
import { delegator, engine, signedCompletion } from "../testing/contracts.ts";
import { fakeTokens } from "../testing/fake-tokens.ts";
import { type Platform, refusal, startPlatform, value } from "../testing/platform.ts";

// SHA-256 of Node.js, which shares no code with Depute. A third party would use such an implementation.
const sha256 = (data: Uint8Array) => new Uint8Array(createHash("sha256").update(data).digest());

const tokens = fakeTokens();
let platform: Platform;
beforeAll(async () => {
  platform = await startPlatform([], tokens);
});
afterAll(() => platform.stop());

async function record(count: number) {
  const { id } = await platform.agree();
  const attestations = Array.from({ length: count }, () => signedCompletion(id));
  await Promise.all(
    attestations.map((attestation) =>
      platform.attestations.recordAttestation({ attestation: toMessage("attestation", attestation) }),
    ),
  );
  return attestations;
}

async function head() {
  const { head } = await platform.log.getLogHead({});
  if (head?.headTime === undefined) throw new Error("no head");
  const { log, treeSize, rootHash, headTime, signature } = head;
  const time = Number(headTime.seconds) * 1000 + headTime.nanos / 1e6;
  return { log, treeSize: Number(treeSize), rootHash, time, signature };
}

test("a third party proves that the log contains a stored document", async () => {
  const attestations = await record(7);
  const { principal } = await platform.attestations.getVerifier({});
  const signed = await head();
  expect(signed.log).toBe(principal);
  expect(verifyLogHead(engine, signed, signed.signature)).toBe(true);
  for (const attestation of attestations) {
    const digest = documentDigest(sha256, attestation);
    const proof = await platform.log.getInclusionProof({ subject: { case: "digest", value: digest } });
    expect(Buffer.from(proof.entry?.digest ?? [])).toEqual(Buffer.from(digest));
    const leaf = leafHash(sha256, proof.entry?.leaf ?? new Uint8Array());
    const claim = {
      index: Number(proof.entry?.index),
      treeSize: Number(proof.treeSize),
      leaf,
      root: signed.rootHash,
      proof: proof.hashes,
    };
    expect(verifyInclusion(sha256, claim)).toBe(true);
    expect(verifyInclusion(sha256, { ...claim, leaf: sha256(leaf) })).toBe(false);
    const byId = await platform.log.getInclusionProof({
      subject: { case: "attestationId", value: attestation.id },
    });
    expect(byId.entry).toEqual(proof.entry);
  }
});

test("proves consistency with every earlier log, and inclusion at earlier sizes", async () => {
  const heads = [await head()];
  for (let i = 0; i < 5; i++) {
    await record(i + 1);
    heads.push(await head());
  }
  for (const [i, later] of heads.entries()) {
    for (const earlier of heads.slice(0, i + 1)) {
      const { hashes } = await platform.log.getConsistencyProof({
        firstSize: BigInt(earlier.treeSize),
        secondSize: BigInt(later.treeSize),
      });
      expect(
        verifyConsistency(sha256, {
          firstSize: earlier.treeSize,
          firstRoot: earlier.rootHash,
          secondSize: later.treeSize,
          secondRoot: later.rootHash,
          proof: hashes,
        }),
      ).toBe(true);
    }
    const { entry, hashes } = await platform.log.getInclusionProof({
      subject: { case: "index", value: 0n },
      treeSize: BigInt(later.treeSize),
    });
    const leaf = leafHash(sha256, entry?.leaf ?? new Uint8Array());
    const claim = { index: 0, treeSize: later.treeSize, leaf, root: later.rootHash, proof: hashes };
    expect(verifyInclusion(sha256, claim)).toBe(true);
  }
});

test("a replay of an attestation adds no leaf, and the verifier's own attestations are leaves", async () => {
  const [attestation] = await record(1);
  const before = await head();
  if (attestation === undefined) throw new Error("none");
  await platform.attestations.recordAttestation({ attestation: toMessage("attestation", attestation) });
  expect((await head()).treeSize).toBe(before.treeSize);
  const ownAttestation = await platform.attestations.attestOutput({
    requestId: "log",
    contractId: attestation.contractId,
    delegationId: attestation.delegationId,
    output: value({ label: "good" }),
  });
  if (ownAttestation.attestation === undefined) throw new Error("none");
  const digest = documentDigest(sha256, toDocument("attestation", ownAttestation.attestation));
  const { entry } = await platform.log.getInclusionProof({ subject: { case: "digest", value: digest } });
  expect(Number(entry?.index)).toBe(before.treeSize);
  const { entries, treeSize } = await platform.log.listLogEntries({
    firstIndex: BigInt(before.treeSize - 1),
  });
  expect(treeSize).toBe(BigInt(before.treeSize + 1));
  expect(entries.map(({ index }) => Number(index))).toEqual([before.treeSize - 1, before.treeSize]);
  expect(JSON.stringify(entries.map(({ leaf }) => Buffer.from(leaf).toString()))).not.toContain("att_");
});

test("lists leaves in pages from an index", async () => {
  await record(4);
  const { treeSize } = await head();
  const firstIndex = BigInt(treeSize - 4);
  const indexes: number[] = [];
  let pageToken = "";
  do {
    const page = await platform.log.listLogEntries({ firstIndex, pageSize: 3, pageToken });
    indexes.push(...page.entries.map(({ index }) => Number(index)));
    pageToken = page.nextPageToken;
  } while (pageToken !== "");
  expect(indexes).toEqual([4, 3, 2, 1].map((back) => treeSize - back));

  const { nextPageToken } = await platform.log.listLogEntries({ firstIndex, pageSize: 1 });
  const elsewhere = { firstIndex: firstIndex + 1n, pageSize: 1, pageToken: nextPageToken };
  expect(await refusal(platform.log.listLogEntries(elsewhere))).toMatchObject({
    reason: "PAGE_TOKEN_INVALID",
  });
});

test("revocations are leaves", async () => {
  const entry = createRevocation(engine, `${"R".repeat(42)}A`, "chain", delegator, platform.clock.now());
  tokens.revoke(entry);
  const subject = { case: "digest", value: documentDigest(sha256, entry) } as const;
  const proof = await vi.waitFor(() => platform.log.getInclusionProof({ subject }), 5000);
  expect(JSON.parse(Buffer.from(proof.entry?.leaf ?? []).toString())).toMatchObject({ kind: "revocation" });
});

test("a restart keeps the log and resumes the revocations at its cursor", async () => {
  await record(3);
  const before = await head();
  await platform.restart();
  expect(await head()).toMatchObject({ treeSize: before.treeSize, rootHash: before.rootHash });
  const entry = createRevocation(engine, `${"S".repeat(42)}A`, "block", delegator, platform.clock.now());
  tokens.revoke(entry);
  await vi.waitFor(async () => expect((await head()).treeSize).toBe(before.treeSize + 1), 5000);
});

test("refuses documents, indexes and sizes that the log does not have", async () => {
  const { treeSize } = await head();
  const { getInclusionProof, getConsistencyProof } = platform.log;
  const unknown = { subject: { case: "digest", value: new Uint8Array(32) } } as const;
  expect(await refusal(getInclusionProof(unknown))).toMatchObject({ reason: "LOG_ENTRY_NOT_FOUND" });
  const after = { subject: { case: "index", value: BigInt(treeSize) } } as const;
  expect(await refusal(getInclusionProof(after))).toMatchObject({ reason: "LOG_ENTRY_NOT_FOUND" });
  const early = { subject: { case: "index", value: 1n }, treeSize: 1n } as const;
  expect(await refusal(getInclusionProof(early))).toMatchObject({ reason: "LOG_ENTRY_NOT_FOUND" });
  const nobody = { subject: { case: "attestationId", value: "att_000000000000" } } as const;
  expect(await refusal(getInclusionProof(nobody))).toMatchObject({ reason: "ATTESTATION_NOT_FOUND" });
  const short = { subject: { case: "digest", value: new Uint8Array(31) } } as const;
  expect(await refusal(getInclusionProof(short))).toMatchObject({ reason: "INVALID_REQUEST" });
  const sizes = [
    { firstSize: 1n, secondSize: BigInt(treeSize + 1) },
    { firstSize: BigInt(treeSize + 1), secondSize: 0n },
    { firstSize: 3n, secondSize: 2n },
  ];
  for (const request of sizes) {
    expect(await refusal(getConsistencyProof(request))).toMatchObject({
      reason: "LOG_SIZE_UNKNOWN",
      metadata: { tree_size: String(treeSize) },
    });
  }
});
