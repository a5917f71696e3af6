import { createHash, createPublicKey, verify } from "node:crypto";
import type { JsonObject } from "@bufbuild/protobuf";
import { AttestationSchema } from "@depute/contracts/delegateos/v0/attestation_pb";
import { TaskContractSchema } from "@depute/contracts/delegateos/v0/contract_pb";
import { formatTime } from "@depute/core";
import { generateKeypair, newId, signObject } from "@depute/dct";
import { nativeEngine as engine } from "@depute/dct/native";
import { decode } from "@depute/wire";
import canonicalize from "canonicalize";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Json, json, startPlatform, type TestPlatform } from "./platform.ts";

let platform: TestPlatform;
/** The signed documents in the log, in its order. */
let attestations: Json[];
const LEAVES = 7;

beforeAll(async () => {
  platform = await startPlatform();
  attestations = await attest(platform, LEAVES);
});
afterAll(() => platform.stop());

const get = (path: string, init: RequestInit = {}) => fetch(`${platform.url}${path}`, init);

/*
 * The checks below follow only the texts on RFC 6962 and on the head's signature. The checks use none of the
 * platform's code.
 */

const sha256 = (...parts: Uint8Array[]) => createHash("sha256").update(Buffer.concat(parts)).digest();
const leafHash = (leaf: Uint8Array) => sha256(Buffer.of(0), leaf);
const nodeHash = (left: Uint8Array, right: Uint8Array) => sha256(Buffer.of(1), left, right);
const bytes = (text: string) => Buffer.from(text, "base64url");

/** Computes the Merkle tree hash of leaves (RFC 6962 2.1). */
function treeHash(leaves: readonly Buffer[]): Buffer {
  if (leaves.length === 0) return sha256();
  if (leaves.length === 1) return leafHash(leaves[0] as Buffer);
  const k = split(leaves.length);
  return nodeHash(treeHash(leaves.slice(0, k)), treeHash(leaves.slice(k)));
}

/** Computes the root that an audit path leads to (RFC 6962 2.1.1). */
function rootOf(index: number, size: number, hash: Buffer, path: Buffer[]): Buffer {
  if (size === 1) return hash;
  const above = path.at(-1) as Buffer;
  const k = split(size);
  return index < k
    ? nodeHash(rootOf(index, k, hash, path.slice(0, -1)), above)
    : nodeHash(above, rootOf(index - k, size - k, hash, path.slice(0, -1)));
}

/** Computes the hashes that prove one tree to be the beginning of another (RFC 6962 2.1.2). */
function consistencyOf(m: number, leaves: readonly Buffer[], whole = true): Buffer[] {
  const n = leaves.length;
  if (m === n) return whole ? [] : [treeHash(leaves)];
  const k = split(n);
  return m <= k
    ? [...consistencyOf(m, leaves.slice(0, k), whole), treeHash(leaves.slice(k))]
    : [...consistencyOf(m - k, leaves.slice(k), false), treeHash(leaves.slice(0, k))];
}

/** Returns the largest power of two below a size. */
function split(size: number): number {
  return 2 ** Math.floor(Math.log2(size - 1));
}

function isSigned({ signature, ...head }: Json): boolean {
  const text = `delegateos-log-head-v1\0${canonicalize(head)}`;
  const key = createPublicKey({ key: { kty: "OKP", crv: "Ed25519", x: head.log }, format: "jwk" });
  return verify(null, Buffer.from(text), key, bytes(signature));
}

test("a head is signed, and covers the leaves", async () => {
  const response = await get("/log/head");
  expect(response.headers.get("cache-control")).toBe("no-cache");
  const head = (await response.json()) as Json;
  expect(head).toMatchObject({ treeSize: LEAVES, signature: expect.any(String) });
  expect(isSigned(head)).toBe(true);
  expect(isSigned({ ...head, treeSize: LEAVES - 1 })).toBe(false);
  const { entries } = await json(get("/log/entries"));
  expect(bytes(head.rootHash)).toEqual(treeHash(entries.map(({ leaf }: Json) => bytes(leaf))));
});

test("a leaf contains the document's digest, its kind and its time", async () => {
  const { entries } = await json(get("/log/entries?first=2&count=1"));
  const [{ index, digest, kind, time, leaf }] = entries;
  expect({ index, kind }).toEqual({ index: 2, kind: "attestation" });
  expect(bytes(leaf).toString()).toBe(canonicalize({ digest, kind, time }));
  expect(bytes(digest)).toEqual(sha256(Buffer.from(canonicalize(attestations[2]) as string)));
  expect(await json(get("/log/entries/2"))).toEqual(entries[0]);
});

test.each(Array.from({ length: LEAVES }, (_, i) => i))(
  "leaf %i has a proof of inclusion in every later tree",
  async (index) => {
    const { entries } = await json(get("/log/entries"));
    const leaves = entries.map(({ leaf }: Json) => bytes(leaf));
    for (let size = index + 1; size <= LEAVES; size++) {
      const proof = await json(get(`/log/proofs/inclusion?index=${index}&tree_size=${size}`));
      const hash = leafHash(bytes(proof.entry.leaf));
      const root = rootOf(index, size, hash, proof.hashes.map(bytes));
      expect(root).toEqual(treeHash(leaves.slice(0, size)));
    }
  },
);

test("a document or its id gives its proof and its head", async () => {
  const document = attestations[3];
  const digest = sha256(Buffer.from(canonicalize(document) as string)).toString("base64url");
  const proof = await json(get(`/log/proofs/inclusion?digest=${digest}`));
  expect(isSigned(proof.head)).toBe(true);
  const root = rootOf(3, LEAVES, leafHash(bytes(proof.entry.leaf)), proof.hashes.map(bytes));
  expect(root).toEqual(bytes(proof.head.rootHash));
  const byId = await json(get(`/log/proofs/inclusion?attestation=${document.id}`));
  expect(byId.entry).toEqual(proof.entry);
});

test("every earlier tree has a proof of consistency with every later one", async () => {
  const { entries } = await json(get("/log/entries"));
  const leaves: Buffer[] = entries.map(({ leaf }: Json) => bytes(leaf));
  for (let second = 1; second <= LEAVES; second++) {
    for (let first = 1; first <= second; first++) {
      const proof = await json(get(`/log/proofs/consistency?first=${first}&second=${second}`));
      expect(proof.hashes.map(bytes)).toEqual(consistencyOf(first, leaves.slice(0, second)));
    }
  }
  const now = await json(get("/log/proofs/consistency?first=1"));
  expect(now).toMatchObject({ first: 1, second: LEAVES });
  expect(isSigned(now.head)).toBe(true);
});

test.each([
  ["/log/entries?first=0&count=3", true],
  ["/log/entries?first=5&count=3", false],
  ["/log/entries/0", true],
  ["/log/proofs/inclusion?index=0&tree_size=3", true],
  ["/log/proofs/inclusion?index=0", false],
  ["/log/proofs/inclusion?index=0&tree_size=0", false],
  ["/log/proofs/consistency?first=1&second=3", true],
  ["/log/proofs/consistency?first=1", false],
])("%s may be cached for ever: %s", async (path, forever) => {
  const response = await get(path);
  const { status, headers } = response;
  const cache = forever ? "public, max-age=31536000, immutable" : "no-cache";
  expect([status, headers.get("cache-control")]).toEqual([200, cache]);
  expect(headers.get("content-type")).toBe("application/json");
  const body = await response.text();
  const etag = headers.get("etag") ?? "";
  if (forever) {
    const again = await get(path, { headers: { "if-none-match": etag } });
    expect([again.status, await again.text()]).toEqual([304, ""]);
  }
  const looked = await get(path, { method: "HEAD" });
  expect([looked.headers.get("content-length"), await looked.text()]).toEqual([String(body.length), ""]);
});

test.each([
  ["/log/entries?first=-1", 400, "INVALID_REQUEST"],
  ["/log/entries?first=1&first=2", 400, "INVALID_REQUEST"],
  ["/log/entries?count=0", 400, "INVALID_REQUEST"],
  ["/log/entries?count=1001", 400, "INVALID_REQUEST"],
  ["/log/entries/99", 404, "LOG_ENTRY_NOT_FOUND"],
  ["/log/entries/x", 400, "INVALID_REQUEST"],
  ["/log/proofs/inclusion", 400, "INVALID_REQUEST"],
  ["/log/proofs/inclusion?index=0&attestation=att_000000000000", 400, "INVALID_REQUEST"],
  ["/log/proofs/inclusion?digest=AAAA", 400, "INVALID_REQUEST"],
  ["/log/proofs/inclusion?attestation=x", 400, "INVALID_REQUEST"],
  ["/log/proofs/inclusion?attestation=att_000000000000", 404, "ATTESTATION_NOT_FOUND"],
  ["/log/proofs/inclusion?index=6&tree_size=3", 404, "LOG_ENTRY_NOT_FOUND"],
  ["/log/proofs/inclusion?index=0&tree_size=99", 400, "LOG_SIZE_UNKNOWN"],
  ["/log/proofs/consistency", 400, "INVALID_REQUEST"],
  ["/log/proofs/consistency?first=3&second=2", 400, "LOG_SIZE_UNKNOWN"],
  ["/log/proofs/consistency?first=3&second=1e1", 400, "INVALID_REQUEST"],
])("%s is answered %i, %s", async (path, status, reason) => {
  const body = await json(get(path), status);
  expect(body.details[0].debug).toMatchObject({ reason });
});

test("the log accepts no POST", async () => {
  expect((await get("/log/entries", { method: "POST" })).status).toBe(405);
});

test("every caller reads the log, also where calls need credentials", async () => {
  const closed = await startPlatform(["--auth", "required"]);
  try {
    const head = await json(fetch(`${closed.url}/log/head`));
    expect(head.treeSize).toBe(0);
    expect(isSigned(head)).toBe(true);
  } finally {
    await closed.stop();
  }
});

/** Records attestations about work under a contract, one after another. */
async function attest({ clients }: TestPlatform, count: number): Promise<Json[]> {
  const issuer = generateKeypair(engine);
  const now = Date.now();
  const contract = signObject(
    engine,
    "contract",
    {
      id: newId("ct"),
      version: "0.1",
      issuer: issuer.principal.id,
      createdAt: formatTime(now),
      task: { title: "Work", description: "", inputs: {}, outputSchema: {} },
      verification: { method: "schema_match" },
      constraints: {
        maxBudgetMicrocents: 1,
        deadline: formatTime(now + 60_000),
        maxChainDepth: 1,
        requiredCapabilities: [],
      },
    },
    issuer,
  );
  const agreed = decode(TaskContractSchema, contract);
  if (!agreed.ok) throw new Error(agreed.error.message);
  await clients.contracts.createContract({ contract: agreed.message });
  const recorded: Json[] = [];
  for (let i = 0; i < count; i++) {
    const attestation = signObject(
      engine,
      "attestation",
      {
        id: newId("att"),
        version: "0.1",
        contractId: contract.id,
        delegationId: newId("del"),
        principal: issuer.principal.id,
        createdAt: formatTime(now),
        type: "completion",
        result: { success: true, output: i, costMicrocents: 1, durationMs: 1 },
        childAttestations: [],
      },
      issuer,
    );
    const decoded = decode(AttestationSchema, attestation as unknown as JsonObject);
    if (!decoded.ok) throw new Error(decoded.error.message);
    await clients.attestations.recordAttestation({ attestation: decoded.message });
    recorded.push(attestation);
  }
  return recorded;
}
