import { Code, ConnectError } from "@connectrpc/connect";
import { reasonName } from "@depute/core";
import { reasonOf } from "../errors-on-wire.ts";

/** The decision on authority that the end of a call shows. */
export interface AuditVerdict {
  readonly decision: "allowed" | "denied";
  /** The reason of a denial, in lower case; of an allowed call, how it ended if not with an answer. */
  readonly reason: string;
}

/** Codes of refusals on authority. */
const DENIED: ReadonlySet<Code> = new Set([Code.PermissionDenied, Code.Unauthenticated]);

/** Codes of calls whose effect the caller does not know. */
const UNCERTAIN: ReadonlySet<Code> = new Set([
  Code.Canceled,
  Code.DeadlineExceeded,
  Code.Unknown,
  Code.Internal,
  Code.DataLoss,
]);

/**
 * Returns the decision that the end of a call shows.
 *
 * @param thrown the exception of the call; undefined for an answer
 * @returns undefined for a call that was refused for other reasons, and therefore changed nothing
 */
export function verdictOf(thrown: unknown): AuditVerdict | undefined {
  if (thrown === undefined) return { decision: "allowed", reason: "" };
  const code = thrown instanceof ConnectError ? thrown.code : Code.Unknown;
  const reason = reasonOf(thrown);
  const word = reason === undefined ? (Code[code] ?? "unknown") : reasonName(reason);
  if (DENIED.has(code)) return { decision: "denied", reason: word.toLowerCase() };
  return UNCERTAIN.has(code) ? { decision: "allowed", reason: word.toLowerCase() } : undefined;
}
