import { portableEngine as engine } from "@depute/dct";
import {
  leafHash,
  logEntryBytes,
  logHeadSigningInput,
  verifyConsistency,
  verifyInclusion,
  verifyLogHead,
} from "@depute/dct/transparency";
import { hexBytes, hexText, type Operations } from "./answer.ts";

const { sha256 } = engine;
const raw = (text: string) => new Uint8Array(Buffer.from(text, "base64url"));

export const merkleOperations: Operations = {
  leaf({ kind, digest, time }) {
    const bytes = logEntryBytes({ kind, digest: raw(digest), time });
    return { expected: { leaf: Buffer.from(bytes).toString(), hashHex: hexText(leafHash(sha256, bytes)) } };
  },

  inclusion({ index, treeSize, leafHex, rootHex, proofHex }) {
    const [leaf, root, proof] = [hexBytes(leafHex), hexBytes(rootHex), proofHex.map(hexBytes)];
    return { expected: { valid: verifyInclusion(sha256, { index, treeSize, leaf, root, proof }) } };
  },

  consistency({ firstSize, firstRootHex, secondSize, secondRootHex, proofHex }) {
    const [firstRoot, secondRoot] = [hexBytes(firstRootHex), hexBytes(secondRootHex)];
    const claim = { firstSize, firstRoot, secondSize, secondRoot, proof: proofHex.map(hexBytes) };
    return { expected: { valid: verifyConsistency(sha256, claim) } };
  },

  head({ log, treeSize, rootHash, time, signature }) {
    const head = { log, treeSize, rootHash: raw(rootHash), time };
    const signedHex = hexText(logHeadSigningInput(head));
    return { expected: { signedHex, valid: verifyLogHead(engine, head, raw(signature)) } };
  },
};
