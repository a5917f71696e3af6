import { describe, expect, it } from "vitest";
import { nativeEngine as engine } from "../engine/native.ts";
import { generateKeypair } from "../principal.ts";
import { type AuditProof, faultOfAuditProof } from "./audit-proof.ts";
import { FIRST_AUDIT_HEAD, rootedAuditSealBytes } from "./audit-seal.ts";
import { logEntryBytes } from "./log-entry.ts";
import { signLogHead } from "./log-head.ts";
import { GrowingTree, leafHash, nodeHash } from "./merkle.ts";

const { sha256 } = engine;
const utf8 = new TextEncoder();
const key = generateKeypair(engine);
const lines = [5, 6, 7].map((sequence) => utf8.encode(`{"sequence":"${sequence}"}`));
const [five, six, seven] = lines.map((line) => leafHash(sha256, line)) as [
  Uint8Array,
  Uint8Array,
  Uint8Array,
];

/** Returns the proof of record 6, in a day of the records 5 to 7, in a log of one leaf. */
function prove(): AuditProof {
  const day = new GrowingTree(sha256);
  for (const leaf of [five, six, seven]) day.add(leaf);
  const [previousHead, head] = [FIRST_AUDIT_HEAD, FIRST_AUDIT_HEAD];
  const seal = {
    ...{ day: "2026-01-31", firstSequence: 5, lastSequence: 7, previousHead, head },
    rootHash: day.root(),
  };
  const entry = { kind: "audit_seal", digest: sha256(rootedAuditSealBytes(seal)), time: 1 } as const;
  const log = { log: key.principal.id, treeSize: 1, time: 2 };
  const logHead = { ...log, rootHash: leafHash(sha256, logEntryBytes(entry)) };
  const signature = signLogHead(engine, logHead, key);
  const inclusion = { index: 0, appendTime: 1, hashes: [], head: logHead, signature };
  return { line: lines[1] as Uint8Array, seal, hashes: [five, seven], inclusion };
}

describe("the proof of an audit record", () => {
  const proof = prove();
  const { seal, inclusion } = proof;
  it("is valid; the root is the root of RFC 6962", () => {
    expect(faultOfAuditProof(engine, proof)).toBeUndefined();
    expect(seal.rootHash).toEqual(nodeHash(sha256, nodeHash(sha256, five, six), seven));
  });
  it.each<[string, Partial<AuditProof>, string]>([
    ["no record", { line: utf8.encode("[]") }, "its line is no audit record"],
    ["bytes that are not UTF-8", { line: Uint8Array.of(0xff) }, "its line is no audit record"],
    ["another day's record", { line: utf8.encode('{"sequence":"8"}') }, "record 8 is not a record of"],
    ["a changed record", { line: utf8.encode('{"sequence":"6","x":1}') }, "record 6 is not in the seal"],
    ["another place in the day", { line: utf8.encode('{"sequence":"5"}') }, "record 5 is not in the seal"],
    ["a path that is too short", { hashes: [five] }, "record 6 is not in the seal"],
    ["a seal without a root", { seal: { ...seal, rootHash: new Uint8Array() } }, "has no root"],
    ["another day's seal", { seal: { ...seal, day: "2026-02-01" } }, "is not in the transparency log"],
    [
      "another time of its leaf",
      { inclusion: { ...inclusion, appendTime: 2 } },
      "is not in the transparency",
    ],
    [
      "a signature of another head",
      { inclusion: { ...inclusion, head: { ...inclusion.head, time: 3 } } },
      "sign",
    ],
  ])("with %s is not", (_, change, fault) => {
    expect(faultOfAuditProof(engine, { ...proof, ...change })).toContain(fault);
  });
});
