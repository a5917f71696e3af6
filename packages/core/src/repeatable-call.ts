import { type DescMethod, getOption, hasOption, type Message } from "@bufbuild/protobuf";
import { MethodOptions_IdempotencyLevel as Level } from "@bufbuild/protobuf/wkt";
import { idempotent_by } from "@depute/contracts/depute/rpc/v1/method_options_pb";

/**
 * Whether a call may be sent again while the outcome of its first attempt is unknown. Such a call changes nothing, or
 * the platform recognizes the repetition by its request id or by another field. A holder proof in the request counts
 * once, so the platform would refuse the repetition.
 *
 * @param message the request of the call; undefined if it is unknown
 */
export function isRepeatable(method: DescMethod, message: Message | undefined): boolean {
  if (hasProof(message)) return false;
  if (method.idempotency === Level.NO_SIDE_EFFECTS || method.idempotency === Level.IDEMPOTENT) return true;
  if (hasOption(method, idempotent_by) && getOption(method, idempotent_by) !== "") return true;
  return ((message as { requestId?: string } | undefined)?.requestId ?? "") !== "";
}

/** Whether a request contains a holder proof (RFC 9449), as a text or a HolderProof. */
function hasProof(message: Message | undefined): boolean {
  const { proof } = (message ?? {}) as { proof?: string | { readonly jwt?: string } };
  return typeof proof === "string" ? proof !== "" : (proof?.jwt ?? "") !== "";
}
