import { ErrorReason } from "@depute/core";
import { fromConnectError, toConnectError, toStatus } from "@depute/service";

/**
 * Why one of several things that a call does was refused, as its answer says it.
 *
 * @throws what was thrown, when that is a fault of the platform's and no refusal: it fails the call, which may be repeated
 */
export function refusalStatus(thrown: unknown) {
  const error = fromConnectError(toConnectError(thrown));
  if (error.reason === ErrorReason.INTERNAL) throw thrown;
  return toStatus(error);
}
