import type { AuthorityBundle, AuthorityStatement, StatedReceipt, StatedToolCall } from "@depute/dct";
import { fromConnectError, type Identity, mayActFor } from "@depute/service";
import { isAuditor, type TokensContext } from "../context.ts";
import type { AuditEntry } from "../rules/audit-record.ts";
import type { StoredDelegation } from "../store/delegation-rows.ts";

/** The subject of an explanation: its recorded chain, its proofs, and the facts about it. */
export interface Subject {
  readonly kind: AuthorityStatement["kind"];
  readonly id: string;
  readonly chain: readonly StoredDelegation[];
  /** The principal that used the authority: present for a receipt, for a tool call, and for a task without a token. */
  readonly principal?: string;
  /**
   * The time at which the authority was used, in epoch milliseconds. If it is absent, the time of the explanation
   * counts.
   */
  readonly time?: number | undefined;
  readonly proofs: Pick<AuthorityBundle, "token" | "attestation" | "attestationProof" | "receipt">;
  readonly receipt?: StatedReceipt;
  readonly toolCall?: StatedToolCall;
  /**
   * The audit records about the subject; if undefined, the bundle contains the records about the chain's last block.
   */
  readonly records?: readonly AuditEntry[];
}

/** The caller of ExplainAuthority. Its functions decide which subjects the caller sees. */
export interface Viewer {
  readonly mayActFor: (principal: string) => boolean;
  /**
   * Whether the caller may read the audit records of an organization; the empty name means the records that no
   * organization owns.
   */
  readonly audits: (organization: string) => boolean;
  /** Whether the caller may see a chain with these parties and this owning organization. */
  readonly maySee: (parties: readonly string[], organization: string) => boolean;
}

/** Returns the viewer for a caller of ExplainAuthority. */
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

/** Returns the response of another service. Converts an error of that service to a DeputeError with the same reason. */
export async function answerOf<T>(call: Promise<T>): Promise<T> {
  try {
    return await call;
  } catch (thrown) {
    throw fromConnectError(thrown);
  }
}
