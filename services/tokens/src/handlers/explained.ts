import type { AuthorityBundle, AuthorityStatement, StatedReceipt, StatedToolCall } from "@depute/dct";
import { fromConnectError, type Identity, mayActFor } from "@depute/service";
import { isAuditor, type TokensContext } from "../context.ts";
import type { AuditEntry } from "../rules/audit-record.ts";
import type { StoredDelegation } from "../store/delegation-rows.ts";

/** A subject of an explanation with its recorded chain, and the subject's own proofs. */
export interface Subject {
  readonly kind: AuthorityStatement["kind"];
  readonly id: string;
  readonly chain: readonly StoredDelegation[];
  /** The principal of a subject without a token. */
  readonly principal?: string;
  /** The time at which the authority was used, in milliseconds since 1970. */
  readonly time?: number | undefined;
  readonly proofs: Pick<AuthorityBundle, "token" | "attestation" | "attestationProof" | "receipt">;
  readonly receipt?: StatedReceipt;
  readonly toolCall?: StatedToolCall;
  /** The records of the audit log about the subject; undefined for those about the last block. */
  readonly records?: readonly AuditEntry[];
}

/** The caller of ExplainAuthority, and the rights that decide which subjects it sees. */
export interface Viewer {
  readonly mayActFor: (principal: string) => boolean;
  /** Whether the caller may read the audit records of an organization; empty for those without one. */
  readonly audits: (organization: string) => boolean;
  /** Whether the caller may see a chain with these parties, which an organization may own. */
  readonly maySee: (parties: readonly string[], organization: string) => boolean;
}

/** Returns the rights of a caller of ExplainAuthority. */
export function viewerOf(tokens: TokensContext, identity: Identity): Viewer {
  const { local, principal, organization: own, organizationRoles = [] } = identity;
  const isOwnAuditor = own !== "" && organizationRoles.includes("auditor");
  const audits = (organization: string) =>
    isAuditor(tokens, identity) || (isOwnAuditor && organization === own);
  return {
    audits,
    mayActFor: (party) => mayActFor(identity, party),
    maySee: (parties, organization) => local || parties.includes(principal) || audits(organization),
  };
}

/** Returns the response of another service. The errors of that service keep their reasons. */
export async function answerOf<T>(call: Promise<T>): Promise<T> {
  try {
    return await call;
  } catch (thrown) {
    throw fromConnectError(thrown);
  }
}
