import { parseTime } from "@depute/core";
import {
  type CryptoEngine,
  type RevocationView,
  type SerializedDCT,
  type SubContractRule,
  verifyToken,
} from "@depute/dct";
import { failed, inconclusive, passed, type TreeFinding } from "./attestation-tree.ts";
import type { Attestation, TaskContract } from "./documents.ts";

/** How long after its own time an attestation may be recorded and still be judged by its own time, in milliseconds. */
export const MAX_RECORD_LAG_MS = 5 * 60_000;

/** What the tokens service keeps of one delegation. Times are milliseconds since the Unix epoch. */
export interface RecordedDelegation {
  to: string;
  contractId: string;
  revocationId: string;
  expiry: number;
}

/** What is known of signers and their rights. */
export interface AuthorityContext {
  /** The verifier's own principal. */
  verifier: string;
  trustedRoots: ReadonlySet<string>;
  /** Tokens by the delegation of their last block. */
  tokens: ReadonlyMap<string, SerializedDCT>;
  /** Recorded delegations with all above them, the root first, by their ids; for those without a token. */
  delegations: ReadonlyMap<string, readonly RecordedDelegation[]>;
  /** Whether a block was revoked up to a time. */
  wasRevoked(revocationId: string, time: number): boolean;
  /** What was revoked up to a time, in milliseconds since the Unix epoch. */
  revokedBy(time: number): RevocationView;
  /** The contract's parent, its parent and so on. */
  lineageOf(contractId: string): readonly string[];
}

/**
 * Whether the signer might make this statement when he made it.
 *
 * The verifier may about anything, a contract's issuer about work that he delegated; everybody else by a token whose
 * last block is the delegation and names him. Depute's choice: createdAt is the signer's word, so one that was recorded
 * later than five minutes after it is judged by when it was recorded, and whose token has ended or was taken back by
 * then cannot say that it was earlier.
 *
 * @param recordTime when the attestation was recorded, in milliseconds since the Unix epoch
 */
export function signerAuthority(
  engine: CryptoEngine,
  attestation: Attestation,
  contract: TaskContract,
  recordTime: number,
  known: AuthorityContext,
): TreeFinding {
  const { principal, delegationId, contractId } = attestation;
  if (speaksForItself(attestation, contract, known.verifier)) return passed("authority");
  const time = Math.max(parseTime(attestation.createdAt) ?? recordTime, recordTime - MAX_RECORD_LAG_MS);
  const token = known.tokens.get(delegationId);
  if (token === undefined) return byRecord(attestation, time, recordTime, known);
  const result = verifyToken(engine, token, {
    trustedRoots: known.trustedRoots,
    revocations: known.revokedBy(recordTime),
    now: time,
    spentMicrocents: 0,
    // The signature of the attestation is what shows that he holds the key.
    holder: "proved",
    contractId,
    requiredCapabilities: contract.constraints.requiredCapabilities,
    subContract: isPartOf(known.lineageOf(contractId), contractId),
  });
  if (!result.ok) return failed("authority", `the token is denied: ${result.denial.type}`);
  return result.scope.holder === principal && result.scope.delegationId === delegationId
    ? passed("authority")
    : failed("authority", "the delegation was not made to the signer");
}

/** Whether a statement needs no delegation: one about delegated work by the verifier or by the contract's issuer. */
export function speaksForItself(
  { principal, type }: Attestation,
  contract: TaskContract,
  verifier: string,
): boolean {
  return type === "delegation_verification" && (principal === verifier || principal === contract.issuer);
}

/** The same by what was recorded when the token was minted or narrowed: its chain was verified then. */
function byRecord(
  { principal, contractId, delegationId }: Attestation,
  time: number,
  recordTime: number,
  known: AuthorityContext,
): TreeFinding {
  const chain = known.delegations.get(delegationId);
  const last = chain?.at(-1);
  if (chain === undefined || last === undefined) {
    return inconclusive("authority", "no token of the delegation was given, and none is recorded");
  }
  if (last.to !== principal) return failed("authority", "the delegation was not made to the signer");
  if (last.contractId !== contractId) return failed("authority", "the delegation is of another contract");
  if (chain.some(({ expiry }) => time > expiry)) return failed("authority", "the delegation had ended");
  return chain.some(({ revocationId }) => known.wasRevoked(revocationId, recordTime))
    ? failed("authority", "the delegation was revoked")
    : passed("authority");
}

/** Whether one contract is below another, both in one lineage. */
function isPartOf(lineage: readonly string[], contractId: string): SubContractRule {
  const places = new Map([contractId, ...lineage].map((id, place) => [id, place]));
  return (child, parent) => {
    const [below, above] = [places.get(child), places.get(parent)];
    return below !== undefined && above !== undefined && below < above;
  };
}
