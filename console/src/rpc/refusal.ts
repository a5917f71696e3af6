import { Code, ConnectError } from "@connectrpc/connect";
import { BadRequestSchema, ErrorInfoSchema } from "@depute/contracts/google/rpc/error_details_pb";

/** The error of a call, as texts for the page. */
export interface Refusal {
  /**
   * The name of the error's `ErrorReason`, e.g. `TASK_NOT_FOUND`, or Connect's code if the error has no reason;
   * `UNREACHABLE` if the platform did not respond.
   */
  readonly reason: string;
  /** The platform's message: the fault, then the remedy. */
  readonly message: string;
  /** The fields of the request that are at fault, each with a description of the fault. */
  readonly fields: readonly { readonly field: string; readonly description: string }[];
}

/** Returns the texts that describe the error of a call. */
export function refusalOf(error: unknown): Refusal {
  const refused = ConnectError.from(error);
  const fields = refused
    .findDetails(BadRequestSchema)
    .flatMap(({ fieldViolations }) =>
      fieldViolations.map(({ field, description }) => ({ field, description })),
    );
  const reason = refused.findDetails(ErrorInfoSchema)[0]?.reason ?? Code[refused.code];
  if (isUnreachable(error))
    return { reason: "UNREACHABLE", message: "The platform does not answer.", fields };
  return { reason, message: refused.rawMessage, fields };
}

/** Whether the platform refused the call because the caller must sign in. */
export function needsCredentials(error: unknown): boolean {
  return ConnectError.from(error).code === Code.Unauthenticated;
}

/** Whether a failure is temporary, so that the same call may succeed later. */
export function isPassing(error: unknown): boolean {
  const { code } = ConnectError.from(error);
  return isUnreachable(error) || code === Code.Unavailable || code === Code.Aborted;
}

/**
 * Returns a function for a query's `refetchInterval`. The function returns `pauseMs`, the milliseconds before the next
 * read. It returns false, for no further read, if the platform refused the first read: the platform would refuse the
 * same request again.
 */
export function unlessRefused(pauseMs: number) {
  return ({ state }: { readonly state: { readonly data: unknown; readonly error: unknown } }) =>
    state.data === undefined && state.error !== null && !isPassing(state.error) ? false : pauseMs;
}

/** Whether the browser's fetch failed, so that the call got no response from the platform. */
function isUnreachable(error: unknown): boolean {
  const refused = ConnectError.from(error);
  return (
    refused.cause instanceof TypeError || (refused.code === Code.Unknown && /fetch/i.test(refused.rawMessage))
  );
}
