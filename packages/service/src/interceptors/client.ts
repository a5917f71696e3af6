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
      mapError(thrown) {
        const silent = thrown instanceof ConnectError && thrown.code === Code.Unavailable;
        return silent && reasonOf(thrown) === undefined ? unavailable(service, thrown) : thrown;
      },
    });
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
