import type { Status } from "@depute/contracts/google/rpc/status_pb";
import { ErrorReason } from "@depute/core";
import { fromConnectError, toConnectError, toStatus } from "@depute/service";

/**
 * Returns the outcome of one item of a batch: the value, converted by `answer`, or the error that refused the item.
 *
 * @throws an error with the reason INTERNAL; this error fails the whole call, and the caller may repeat the call
 */
export function batchOutcome<Value, Answer>(
  result: PromiseSettledResult<Value>,
  answer: (value: Value) => Answer,
): Answer | { case: "error"; value: Status } {
  if (result.status === "fulfilled") return answer(result.value);
  const error = fromConnectError(toConnectError(result.reason));
  if (error.reason === ErrorReason.INTERNAL) throw result.reason;
  return { case: "error", value: toStatus(error) };
}
