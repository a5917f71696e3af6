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

/**
 * Maximum accepted time, in milliseconds, from an attestation's createdAt to the time when the service recorded it. An
 * earlier createdAt counts as the record time minus this maximum.
 */
export const MAX_RECORD_LAG_MS = 5 * 60_000;

/** A delegation that the tokens service has recorded. Times are epoch milliseconds. */
export interface RecordedDelegation {
  from: string;
  to: string;
  contractId: string;
  revocationId: string;
  expiry: number;
  /** When the tokens service recorded it. */
  createTime: number;
}

/** The facts that decide whether signers had authority. */
export interface AuthorityContext {
  /** The principal of the verifier service. */
  verifier: string;
  /** Returns the roots that were trusted at a time, in epoch milliseconds. */
  rootsAt(time: number): ReadonlySet<string>;
  /** Tokens by the delegation id of their last block. */
  tokens: ReadonlyMap<string, SerializedDCT>;
  /**
   * Recorded delegations with their ancestors, root first, by delegation id. A recorded delegation counts only if the
   * request has no token for the delegation.
   */
  delegations: ReadonlyMap<string, readonly RecordedDelegation[]>;
  /**
   * For chains whose root key has retired, by the delegation id of their last block: the time when the tokens service
   * recorded their root block, in epoch milliseconds; Infinity without a record.
   */
  rootBlockTimes: ReadonlyMap<string, number>;
  /** Whether a block was revoked at or before a time in epoch milliseconds. */
  wasRevoked(revocationId: string, time: number): boolean;
  /** Returns the revocations that were recorded at or before a time in epoch milliseconds. */
  revokedBy(time: number): RevocationView;
  /** Returns the ids of the contract's ancestors, beginning with its parent. */
  lineageOf(contractId: string): readonly string[];
}

/**
 * Checks that the signer was allowed to sign the attestation at the attestation's time. The verifier and the contract's
 * issuer may sign attestations of type `delegation_verification` without a delegation. Every other signer needs a
 * delegation: a token, or a recorded chain, whose last block names the signer. The attestation's time is createdAt, but
 * at most five minutes before the service recorded the attestation. The five minutes are Depute's choice: createdAt is
 * only the signer's claim, and a signer could backdate an attestation to before the token's expiry.
 *
 * @param recordTime the time when the service recorded the attestation, in epoch milliseconds
 */
export function signerAuthority(
  engine: CryptoEngine,
  attestation: Attestation,
  contract: TaskContract,
  recordTime: number,
  authority: AuthorityContext,
): TreeFinding {
  const { principal, delegationId, contractId } = attestation;
  if (needsNoDelegation(attestation, contract, authority.verifier)) return passed("authority");
  const time = Math.max(parseTime(attestation.createdAt) ?? recordTime, recordTime - MAX_RECORD_LAG_MS);
  const token = authority.tokens.get(delegationId);
  if (token === undefined) return authorityByRecord(attestation, time, recordTime, authority);
  const result = verifyToken(engine, token, {
    // The time of the record counts, not createdAt, because a thief of a retired root can backdate createdAt.
    trustedRoots: authority.rootsAt(recordTime),
    revocations: authority.revokedBy(recordTime),
    now: time,
    spentMicrocents: 0,
    // The attestation's signature proves that the signer has the key.
    holder: "proved",
    contractId,
    requiredCapabilities: contract.constraints.requiredCapabilities,
    subContract: isPartOf(authority.lineageOf(contractId), contractId),
  });
  if (!result.ok) return failed("authority", `the token is denied: ${result.denial.type}`);
  if (result.scope.holder !== principal || result.scope.delegationId !== delegationId)
    return failed("authority", "the signer is not the delegatee");
  return olderThanAttestation(delegationId, recordTime, authority);
}

/**
 * Checks that a chain of a retired root key is older than the attestation. The thief of a root key can sign a root block
 * at any time, also for work that is attested already. So only the record of the block shows that it came first.
 */
function olderThanAttestation(
  delegationId: string,
  recordTime: number,
  { rootBlockTimes }: AuthorityContext,
): TreeFinding {
  if ((rootBlockTimes.get(delegationId) ?? 0) <= recordTime) return passed("authority");
  return inconclusive(
    "authority",
    "the root key has retired, and no record shows that its block is older than the attestation",
  );
}

/**
 * Whether the attestation needs no delegation: its type is `delegation_verification`, and the verifier or the
 * contract's issuer signed it.
 */
export function needsNoDelegation(
  { principal, type }: Attestation,
  contract: TaskContract,
  verifier: string,
): boolean {
  return type === "delegation_verification" && (principal === verifier || principal === contract.issuer);
}

/**
 * Checks a signer by the recorded delegation, if the request has no token for the delegation. The tokens service
 * verified the chain before it recorded the chain.
 */
function authorityByRecord(
  { principal, contractId, delegationId }: Attestation,
  time: number,
  recordTime: number,
  authority: AuthorityContext,
): TreeFinding {
  const chain = authority.delegations.get(delegationId);
  const last = chain?.at(-1);
  if (chain === undefined || last === undefined) {
    return inconclusive(
      "authority",
      "the request has no token of the delegation, and there is no record of it",
    );
  }
  if (last.to !== principal) return failed("authority", "the signer is not the delegatee");
  if (last.contractId !== contractId)
    return failed("authority", "the delegation belongs to another contract");
  if (chain.some(({ expiry }) => time > expiry)) return failed("authority", "the delegation had expired");
  const [{ from } = last] = chain;
  if (!authority.rootsAt(recordTime).has(from))
    return failed("authority", "the root of the delegation was not trusted");
  return chain.some(({ revocationId }) => authority.wasRevoked(revocationId, recordTime))
    ? failed("authority", "the delegation was revoked")
    : olderThanAttestation(delegationId, recordTime, authority);
}

/**
 * Returns the rule that decides whether one contract is below another. The rule knows only the contract and its
 * ancestors.
 */
function isPartOf(lineage: readonly string[], contractId: string): SubContractRule {
  const places = new Map([contractId, ...lineage].map((id, place) => [id, place]));
  return (child, parent) => {
    const [below, above] = [places.get(child), places.get(parent)];
    return below !== undefined && above !== undefined && below < above;
  };
}
