import { Code, ConnectError, type Interceptor } from "@connectrpc/connect";
import { DeputeError, ErrorReason } from "@depute/core";
import { HOP } from "../caller.ts";
import { reasonOf, toWire } from "../errors-on-wire.ts";
import { withHooks } from "./outcome.ts";
import { clientTracingInterceptor } from "./tracing.ts";

export interface ClientInterceptorOptions {
  /** The name of the called service, for errors. */
  service: string;
  /** The secret that is sent to Depute's own processes; empty when there is none. */
  internalSecret: string;
  tracing: boolean;
}

/** Returns the interceptors of calls to other services of Depute, outermost first. */
export function clientInterceptors({
  service,
  internalSecret,
  tracing,
}: ClientInterceptorOptions): Interceptor[] {
  return [
    unavailableInterceptor(service),
    ...(tracing ? [clientTracingInterceptor()] : []),
    ...(internalSecret === "" ? [] : [secretInterceptor(internalSecret)]),
  ];
}

/**
 * Names the called service in the error of a call that the service did not answer. Refusals with a reason stay
 * unchanged.
 */
function unavailableInterceptor(service: string): Interceptor {
  return (next) => (request) =>
    withHooks(next, request, {
      mapError: (thrown) => (isPeerGone(thrown, request.signal) ? unavailable(service, thrown) : thrown),
    });
}

/** The codes that the library raises for a broken connection, a reset stream and an incomplete response. */
const CODES_OF_TRANSPORT: readonly Code[] = [
  Code.Unavailable,
  Code.Aborted,
  Code.Canceled,
  Code.Internal,
  Code.Unknown,
  Code.DataLoss,
  // Connect raises this code for an answer that ends in the middle of a message.
  Code.InvalidArgument,
];

/**
 * Whether a call failed because its peer or the connection died. A refusal by a service always has a reason. An
 * error with the code CANCELLED has no reason, because the caller or a reset stream causes that code.
 *
 * @param signal the signal of the call; aborts when the caller cancels or the time is over
 */
function isPeerGone(thrown: unknown, signal: AbortSignal): boolean {
  if (!(thrown instanceof ConnectError) || signal.aborted || reasonOf(thrown) !== undefined) return false;
  // A message that cannot be serialized is a fault of this process, not of the peer.
  if (thrown.rawMessage.startsWith("serialize ")) return false;
  return CODES_OF_TRANSPORT.includes(thrown.code);
}

/** Returns the error of a call to a service that is not available. */
export function unavailable(service: string, cause?: unknown): ConnectError {
  const message = `the ${service} service does not answer`;
  return toWire(
    new DeputeError(ErrorReason.DEPENDENCY_UNAVAILABLE, message, { metadata: { service }, cause }),
  );
}

function secretInterceptor(secret: string): Interceptor {
  return (next) => (request) => {
    request.header.set(HOP.internal, secret);
    return next(request);
  };
}
