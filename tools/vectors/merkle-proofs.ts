import { encodeBase64Url } from "@depute/core";
import {
  consistencyRanges,
  inclusionRanges,
  type LeafRange,
  leafHash,
  logEntryBytes,
  logHeadSigningInput,
  nodeHash,
  signLogHead,
  verifyConsistency,
  verifyInclusion,
  verifyLogHead,
} from "@depute/dct/transparency";
import {
  engine,
  hex,
  keypairOf,
  NOW,
  principalOf,
  utf8,
  type VectorCase,
  type VectorFile,
} from "./shared.ts";

const { sha256 } = engine;
const KINDS = ["attestation", "verification_result", "revocation", "session_head"] as const;
const ENTRIES = Array.from({ length: 11 }, (_, i) => ({
  kind: KINDS[i % 4] as (typeof KINDS)[number],
  digest: sha256(utf8(`document ${i}`)),
  time: NOW + i,
}));
const LEAVES = ENTRIES.map((entry) => leafHash(sha256, logEntryBytes(entry)));

function rootOf({ begin, end }: LeafRange): Uint8Array {
  if (end - begin === 1) return LEAVES[begin] as Uint8Array;
  let half = 1;
  while (half * 2 < end - begin) half *= 2;
  return nodeHash(sha256, rootOf({ begin, end: begin + half }), rootOf({ begin: begin + half, end }));
}

const rootText = (size: number) => hex(rootOf({ begin: 0, end: size }));
const proofOf = (ranges: readonly LeafRange[]) => ranges.map((range) => hex(rootOf(range)));
const bytes = (text: string) => new Uint8Array(Buffer.from(text, "hex"));

export function merkleVectors(): VectorFile {
  return {
    specification: "merkle-proofs.md",
    cases: [...leaves(), ...inclusions(), ...consistencies(), ...heads()],
  };
}

function leaves(): VectorCase[] {
  return ENTRIES.slice(0, 4).map((entry) => ({
    name: `leaf: ${entry.kind}`,
    operation: "leaf",
    input: { kind: entry.kind, digest: encodeBase64Url(entry.digest), time: entry.time },
    expected: {
      leaf: new TextDecoder().decode(logEntryBytes(entry)),
      hashHex: hex(leafHash(sha256, logEntryBytes(entry))),
    },
  }));
}

function inclusions(): VectorCase[] {
  const honest = [
    [0, 1],
    [0, 2],
    [2, 3],
    [4, 7],
    [6, 7],
    [10, 11],
  ].map(([index = 0, treeSize = 0]) => ({
    name: `inclusion: leaf ${index} of ${treeSize}`,
    input: {
      ...{ index, treeSize, leafHex: hex(LEAVES[index] as Uint8Array), rootHex: rootText(treeSize) },
      proofHex: proofOf(inclusionRanges(index, treeSize)),
    },
  }));
  const base = honest[3]?.input as (typeof honest)[0]["input"];
  const wrong = [
    { name: "inclusion: another index", input: { ...base, index: 5 } },
    { name: "inclusion: an index outside", input: { ...base, index: 7 } },
    { name: "inclusion: a shorter proof", input: { ...base, proofHex: base.proofHex.slice(1) } },
    { name: "inclusion: a longer proof", input: { ...base, proofHex: [...base.proofHex, base.leafHex] } },
    { name: "inclusion: another root", input: { ...base, rootHex: rootText(6) } },
  ];
  return [...honest, ...wrong].map(({ name, input }) => ({
    ...{ name, operation: "inclusion", input },
    expected: {
      valid: verifyInclusion(sha256, {
        ...{ index: input.index, treeSize: input.treeSize },
        ...{ leaf: bytes(input.leafHex), root: bytes(input.rootHex), proof: input.proofHex.map(bytes) },
      }),
    },
  }));
}

function consistencies(): VectorCase[] {
  const honest = [
    [1, 2],
    [2, 3],
    [3, 7],
    [4, 8],
    [6, 11],
    [7, 7],
  ].map(([firstSize = 0, secondSize = 0]) => ({
    name: `consistency: ${firstSize} to ${secondSize}`,
    input: {
      ...{ firstSize, firstRootHex: rootText(firstSize), secondSize, secondRootHex: rootText(secondSize) },
      proofHex: proofOf(consistencyRanges(firstSize, secondSize)),
    },
  }));
  const base = honest[2]?.input as (typeof honest)[0]["input"];
  const wrong = [
    { name: "consistency: another first root", input: { ...base, firstRootHex: rootText(2) } },
    { name: "consistency: another second root", input: { ...base, secondRootHex: rootText(8) } },
    { name: "consistency: a shorter proof", input: { ...base, proofHex: base.proofHex.slice(1) } },
    { name: "consistency: sizes exchanged", input: { ...base, firstSize: 7, secondSize: 3 } },
  ];
  return [...honest, ...wrong].map(({ name, input }) => ({
    ...{ name, operation: "consistency", input },
    expected: {
      valid: verifyConsistency(sha256, {
        ...{ firstSize: input.firstSize, firstRoot: bytes(input.firstRootHex), secondSize: input.secondSize },
        ...{ secondRoot: bytes(input.secondRootHex), proof: input.proofHex.map(bytes) },
      }),
    },
  }));
}

function heads(): VectorCase[] {
  const head = { log: principalOf("carol"), treeSize: 7, rootHash: rootOf({ begin: 0, end: 7 }), time: NOW };
  const signature = signLogHead(engine, head, keypairOf("carol"));
  const rows = [
    { name: "an honest head", claimed: head },
    { name: "another size", claimed: { ...head, treeSize: 8 } },
    { name: "another log", claimed: { ...head, log: principalOf("dave") } },
  ];
  return rows.map(({ name, claimed }) => ({
    name: `head: ${name}`,
    operation: "head",
    input: { ...claimed, rootHash: encodeBase64Url(claimed.rootHash), signature: encodeBase64Url(signature) },
    expected: {
      signedHex: hex(logHeadSigningInput(claimed)),
      valid: verifyLogHead(engine, claimed, signature),
    },
  }));
}
