import { Code, ConnectError } from "@connectrpc/connect";
import { reasonName } from "@depute/core";
import { reasonOf } from "../errors-on-wire.ts";

/** The decision on authority that follows from the end of a call. */
export interface AuditVerdict {
  readonly decision: "allowed" | "denied";
  /**
   * The reason of the error that ended the call, in lower case, e.g. `token_denied`; the status code if the error has
   * no reason. Empty for a call with a response.
   */
  readonly reason: string;
}

/** The status codes of denied calls. */
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
 * Returns the decision on authority that follows from the end of a call.
 *
 * @param thrown the exception of the call; undefined for a response
 * @returns undefined if the call was refused for a reason other than authority; such a call changed nothing
 */
export function verdictOf(thrown: unknown): AuditVerdict | undefined {
  if (thrown === undefined) return { decision: "allowed", reason: "" };
  const code = thrown instanceof ConnectError ? thrown.code : Code.Unknown;
  const reason = reasonOf(thrown);
  const word = reason === undefined ? (Code[code] ?? "unknown") : reasonName(reason);
  if (DENIED.has(code)) return { decision: "denied", reason: word.toLowerCase() };
  return UNCERTAIN.has(code) ? { decision: "allowed", reason: word.toLowerCase() } : undefined;
}
