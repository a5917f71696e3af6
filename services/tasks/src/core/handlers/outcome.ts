import type { Status } from "@depute/contracts/google/rpc/status_pb";
import { ErrorReason } from "@depute/core";
import { fromConnectError, toConnectError, toStatus } from "@depute/service";

/**
 * What has become of one of several things that a call does, as its answer says it: by `told`, or why it was refused.
 *
 * @throws what was thrown, when that is a fault of the platform's and no refusal: it fails the call, which may be repeated
 */
export function outcomeOf<Value, Told>(
  result: PromiseSettledResult<Value>,
  told: (value: Value) => Told,
): Told | { case: "error"; value: Status } {
  if (result.status === "fulfilled") return told(result.value);
  const error = fromConnectError(toConnectError(result.reason));
  if (error.reason === ErrorReason.INTERNAL) throw result.reason;
  return { case: "error", value: toStatus(error) };
}
