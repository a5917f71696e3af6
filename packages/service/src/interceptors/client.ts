import type { ConnectError, Interceptor } from "@connectrpc/connect";
import { DeputeError, ErrorReason } from "@depute/core";
import { toWire } from "../errors-on-wire.ts";
import { HOP } from "../hop-headers.ts";
import type { InternalSecrets } from "../internal-secrets.ts";
import { failoverInterceptor } from "./failover.ts";
import { withHooks } from "./outcome.ts";
import { isPeerGone } from "./peer-gone.ts";
import { clientTracingInterceptor } from "./tracing.ts";

export interface ClientInterceptorOptions {
  /** The name of the called service, for errors. */
  service: string;
  /** The secrets that Depute's own processes share. A call carries the first secret. */
  internalSecrets: Pick<InternalSecrets, "sent">;
  tracing: boolean;
  /** Number of replicas of the called service in other processes; absent for a service in this process. */
  replicas?: number;
}

/** Returns the interceptors of calls to other services of Depute, outermost first. */
export function clientInterceptors({
  service,
  internalSecrets,
  tracing,
  replicas,
}: ClientInterceptorOptions): Interceptor[] {
  return [
    unavailableInterceptor(service),
    ...(replicas === undefined ? [] : [failoverInterceptor(replicas)]),
    ...(tracing ? [clientTracingInterceptor()] : []),
    secretInterceptor(internalSecrets),
  ];
}

/**
 * If the called service did not respond, replaces the error by one that names the service. Errors that have a reason
 * stay unchanged.
 */
function unavailableInterceptor(service: string): Interceptor {
  return (next) => (request) =>
    withHooks(next, request, {
      mapError: (thrown) => (isPeerGone(thrown, request.signal) ? unavailable(service, thrown) : thrown),
    });
}

/** Returns the error of a call to a service that is not available. */
export function unavailable(service: string, cause?: unknown): ConnectError {
  const message = `the ${service} service does not answer`;
  return toWire(
    new DeputeError(ErrorReason.DEPENDENCY_UNAVAILABLE, message, { metadata: { service }, cause }),
  );
}

function secretInterceptor(secrets: Pick<InternalSecrets, "sent">): Interceptor {
  return (next) => (request) => {
    if (secrets.sent !== "") request.header.set(HOP.internal, secrets.sent);
    return next(request);
  };
}
