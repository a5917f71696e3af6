import type { GetAuditRecordProofResponse } from "@depute/contracts/depute/tokens/v1/audit_service_pb";
import { fromTimestamp } from "@depute/core";
import { portableEngine } from "@depute/dct";
import { type AuditProof, faultOfAuditProof } from "@depute/dct/transparency";

/**
 * Verifies the proof of an audit record offline.
 *
 * @param trustedLogs the principals of the transparency logs that the verifier trusts; the proof itself must not supply
 * them
 * @returns what the proof lacks; undefined for a valid proof
 */
export function faultOfAuditRecordProof(
  response: GetAuditRecordProofResponse,
  trustedLogs: ReadonlySet<string>,
): string | undefined {
  const proof = proofOf(response);
  if (proof === undefined) return "the proof lacks its seal, its inclusion or a time";
  const { log } = proof.inclusion.head;
  return trustedLogs.has(log) ? faultOfAuditProof(portableEngine, proof) : `the log ${log} is not trusted`;
}

function proofOf({ line, seal, hashes, inclusion }: GetAuditRecordProofResponse): AuditProof | undefined {
  if (inclusion?.appendTime === undefined || inclusion.headTime === undefined || seal === undefined) {
    return undefined;
  }
  const { day, firstSequence, lastSequence, previousHead, head, rootHash } = seal;
  const { log, treeSize, index, appendTime, headTime, signature } = inclusion;
  return {
    line: new TextEncoder().encode(line),
    hashes,
    seal: {
      ...{ day, firstSequence: Number(firstSequence), lastSequence: Number(lastSequence) },
      ...{ previousHead, head, rootHash },
    },
    inclusion: {
      ...{ index: Number(index), appendTime: fromTimestamp(appendTime), hashes: inclusion.hashes, signature },
      head: {
        ...{ log, treeSize: Number(treeSize), rootHash: inclusion.rootHash },
        time: fromTimestamp(headTime),
      },
    },
  };
}
