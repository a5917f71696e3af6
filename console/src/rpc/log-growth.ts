import type { Client } from "@connectrpc/connect";
import type { LogHead, LogService } from "@depute/contracts/depute/verifier/v1/log_service_pb";
import { faultBySize, type GrowthCheck } from "../rules/log-growth.ts";
import { isConsistent, isHeadGenuine } from "../rules/log-proofs.ts";
import { readLastHead, storeLastHead } from "./last-head.ts";

/**
 * Verifies that a head extends the head that this browser verified last, and stores the head if it does.
 *
 * @throws ConnectError if the platform returns no proof; the stored head then stays unchanged
 */
export async function checkGrowth(
  client: Client<typeof LogService>,
  head: LogHead,
  signal: AbortSignal,
): Promise<GrowthCheck> {
  const since = readLastHead(head.log);
  const outcome = (proofs: number, fault?: string): GrowthCheck => ({ proofs, since, fault });
  if (!isHeadGenuine(head)) return outcome(0, "the log's key did not sign the head");
  const fault = since && faultBySize(since, head);
  if (fault !== undefined) return outcome(0, fault);
  if (since?.treeSize === head.treeSize) return outcome(0);
  // The first head that this browser sees has no earlier head to extend. Every head extends an empty tree. Neither
  // needs a proof.
  if (since === undefined || since.treeSize === 0n) {
    storeLastHead(head);
    return outcome(0);
  }
  const { hashes } = await client.getConsistencyProof(
    { firstSize: since.treeSize, secondSize: head.treeSize },
    { signal },
  );
  if (!isConsistent(since, head, hashes)) return outcome(0, "the consistency proof does not hold");
  storeLastHead(head);
  return outcome(1);
}
