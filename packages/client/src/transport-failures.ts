import { Code, ConnectError, type Interceptor } from "@connectrpc/connect";
import { isTransportFailure } from "@depute/core";
import { reasonOf } from "./reasons.ts";

/**
 * Reports a failure of the connection or of the server's process as UNAVAILABLE, as gRPC's own clients do. Connect
 * raises CANCELLED, ABORTED or INTERNAL for some of these failures, which would look like an answer of the platform.
 */
export const failuresAsUnavailable: Interceptor = (next) => async (request) => {
  const { signal } = request;
  try {
    const response = await next(request);
    return response.stream ? { ...response, message: readable(response.message, signal) } : response;
  } catch (error) {
    throw asUnavailable(error, signal);
  }
};

async function* readable<T>(messages: AsyncIterable<T>, signal: AbortSignal): AsyncIterable<T> {
  try {
    yield* messages;
  } catch (error) {
    throw asUnavailable(error, signal);
  }
}

/** Returns the error to throw. An error after the caller's cancel, and an answer of the platform, stay unchanged. */
function asUnavailable(error: unknown, signal: AbortSignal): unknown {
  if (!(error instanceof ConnectError) || signal.aborted || reasonOf(error) !== undefined) return error;
  if (error.code === Code.Unavailable || !isTransportFailure(error)) return error;
  const message = `the connection to the platform failed: ${error.rawMessage}`;
  return new ConnectError(message, Code.Unavailable, error.metadata, undefined, error);
}
