import { timestampMs } from "@bufbuild/protobuf/wkt";
import type {
  GetInclusionProofResponse,
  LogEntry,
  LogHead,
} from "@depute/contracts/depute/verifier/v1/log_service_pb";
import { portableEngine } from "@depute/dct";
import { leafHash, verifyConsistency, verifyInclusion, verifyLogHead } from "@depute/dct/transparency";

const sha256 = (data: Uint8Array) => portableEngine.sha256(data);

/** Whether the log's own key signed a head. */
export function isHeadGenuine({ log, treeSize, rootHash, headTime, signature }: LogHead): boolean {
  const time = headTime === undefined ? 0 : timestampMs(headTime);
  return verifyLogHead(portableEngine, { log, treeSize: Number(treeSize), rootHash, time }, signature);
}

/** Whether the platform's proof shows that a later head only adds leaves to an earlier head. */
export function isConsistent(first: LogHead, second: LogHead, proof: readonly Uint8Array[]): boolean {
  return (
    isHeadGenuine(second) &&
    verifyConsistency(sha256, {
      firstSize: Number(first.treeSize),
      firstRoot: first.rootHash,
      secondSize: Number(second.treeSize),
      secondRoot: second.rootHash,
      proof,
    })
  );
}

/** Whether the platform's proof shows that a signed head includes an entry. */
export function isIncluded(
  entry: LogEntry,
  { treeSize, hashes, head }: Pick<GetInclusionProofResponse, "treeSize" | "hashes" | "head">,
): boolean {
  if (head === undefined || head.treeSize !== treeSize || !isHeadGenuine(head)) return false;
  return verifyInclusion(sha256, {
    index: Number(entry.index),
    treeSize: Number(treeSize),
    leaf: leafHash(sha256, entry.leaf),
    root: head.rootHash,
    proof: hashes,
  });
}
