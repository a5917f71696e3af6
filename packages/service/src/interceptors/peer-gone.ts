import { Code, ConnectError } from "@connectrpc/connect";
import { reasonOf } from "../errors-on-wire.ts";

/** The codes that Connect raises for a broken connection, a reset stream and an incomplete response. */
const CODES_OF_TRANSPORT: readonly Code[] = [
  Code.Unavailable,
  Code.Aborted,
  Code.Canceled,
  Code.Internal,
  Code.Unknown,
  Code.DataLoss,
  // Connect raises InvalidArgument for a response that ends in the middle of a message.
  Code.InvalidArgument,
];

/**
 * Whether a call failed because its peer or the connection died. A refusal by a service has a reason; an error with a
 * code of {@link CODES_OF_TRANSPORT} and no reason comes from the transport.
 *
 * @param signal the signal of the call, which aborts when the caller cancels or the deadline passes; then the result is
 * false
 */
export function isPeerGone(thrown: unknown, signal: AbortSignal): boolean {
  if (!(thrown instanceof ConnectError) || signal.aborted || reasonOf(thrown) !== undefined) return false;
  // A message that cannot be serialized is a fault of this process, not of the peer.
  if (thrown.rawMessage.startsWith("serialize ")) return false;
  return CODES_OF_TRANSPORT.includes(thrown.code);
}
