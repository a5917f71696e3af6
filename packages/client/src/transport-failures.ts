import { Code, ConnectError, type Transport } from "@connectrpc/connect";
import { isTransportFailure } from "@depute/core";
import { reasonOf } from "./reasons.ts";

/**
 * Returns a transport that reports a failure of the connection or of the server's process as UNAVAILABLE, as gRPC's own
 * clients do. Connect raises CANCELLED, ABORTED or INTERNAL for some of these failures, which would look like an answer
 * of the platform.
 */
export function failuresAsUnavailable(transport: Transport): Transport {
  return {
    unary: (method, signal, timeoutMs, header, input, values) =>
      transport.unary(method, signal, timeoutMs, header, input, values).catch((error: unknown) => {
        throw asUnavailable(error, signal);
      }),
    async stream(method, signal, timeoutMs, header, input, values) {
      try {
        const response = await transport.stream(method, signal, timeoutMs, header, input, values);
        return { ...response, message: readable(response.message, signal) };
      } catch (error) {
        throw asUnavailable(error, signal);
      }
    },
  };
}

async function* readable<T>(messages: AsyncIterable<T>, signal: AbortSignal | undefined): AsyncIterable<T> {
  try {
    yield* messages;
  } catch (error) {
    throw asUnavailable(error, signal);
  }
}

/** Returns the error to throw. An error after the caller's cancel, and an answer of the platform, stay unchanged. */
function asUnavailable(error: unknown, signal: AbortSignal | undefined): unknown {
  if (!(error instanceof ConnectError) || signal?.aborted || reasonOf(error) !== undefined) return error;
  if (error.code === Code.Unavailable || !isTransportFailure(error)) return error;
  const message = `the connection to the platform failed: ${error.rawMessage}`;
  return new ConnectError(message, Code.Unavailable, error.metadata, undefined, error);
}
