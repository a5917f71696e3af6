import { Code, ConnectError, type Interceptor } from "@connectrpc/connect";
import { DeputeError, ErrorReason } from "@depute/core";
import { HOP } from "../caller.ts";
import { reasonOf, toWire } from "../errors-on-wire.ts";
import { withHooks } from "./outcome.ts";
import { clientTracingInterceptor } from "./tracing.ts";

export interface ClientInterceptorOptions {
  /** The service that is called, for errors. */
  service: string;
  /** Presented to Depute's own processes; empty when there is none. */
  internalSecret: string;
  tracing: boolean;
}

/** What a call to another of Depute's services passes on its way out, outermost first. */
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

/** Says which service does not answer. Refusals with a reason pass as they are. */
function unavailableInterceptor(service: string): Interceptor {
  return (next) => (request) =>
    withHooks(next, request, {
      mapError: (thrown) => (isPeerGone(thrown, request.signal) ? unavailable(service, thrown) : thrown),
    });
}

/** What the library raises for a connection that broke, a stream that was reset and an answer that ends in the middle. */
const CODES_OF_TRANSPORT: readonly Code[] = [
  Code.Unavailable,
  Code.Aborted,
  Code.Canceled,
  Code.Internal,
  Code.Unknown,
  Code.DataLoss,
  // The library's word for an answer that ends within a message.
  Code.InvalidArgument,
];

/**
 * Whether a call failed because its peer died, or what is between. Every refusal of a service carries a reason, but for
 * CANCELLED, which is the caller's own doing or nobody's.
 *
 * @param signal of the call; aborts when the caller gives up, or its time is over
 */
function isPeerGone(thrown: unknown, signal: AbortSignal): boolean {
  if (!(thrown instanceof ConnectError) || signal.aborted || reasonOf(thrown) !== undefined) return false;
  // A message that cannot be written is a fault of ours.
  if (thrown.rawMessage.startsWith("serialize ")) return false;
  return CODES_OF_TRANSPORT.includes(thrown.code);
}

/** What a call meets when its service is not up. */
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
