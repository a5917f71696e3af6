import { type DescMethod, getOption, hasOption } from "@bufbuild/protobuf";
import type { Interceptor } from "@connectrpc/connect";
import { message_proves_caller } from "@depute/contracts/depute/rpc/v1/method_options_pb";
import { type AuthenticationOptions, authenticate, proveIdentity } from "./authenticate.ts";
import { clientCertificateKey, inProcessKey, trustedKey } from "./call-values.ts";
import { callerKey, credentialsKey } from "./caller.ts";
import { HOP } from "./hop-headers.ts";
import type { Next, Request } from "./interceptors/outcome.ts";
import type { InternalSecrets } from "./internal-secrets.ts";

/** The address at which clients reach a server. */
export interface Reach {
  /**
   * The URL under which clients reach the server, without a trailing slash. The URL may change when the server begins
   * to listen.
   */
  readonly publicUrl: string;
}

export interface CallerOptions extends AuthenticationOptions {
  reach: Reach;
  /** The secrets that the platform's processes share. */
  internalSecrets: Pick<InternalSecrets, "accepts">;
  /** Full names of services that need no credentials, such as `grpc.health.v1.Health`. */
  exempt: readonly string[];
}

/** Stores the Caller in the call's values, or refuses the call. */
export function callerInterceptor(options: CallerOptions): Interceptor {
  const exempt = new Set(options.exempt);
  const identified = async (next: Next, request: Request) => {
    const { header, contextValues, requestMethod, method } = request;
    const trusted =
      contextValues.get(inProcessKey) || options.internalSecrets.accepts(header.get(HOP.internal));
    if (trusted) contextValues.set(trustedKey, true);
    const presented = {
      header,
      htm: requestMethod,
      htu: `${options.reach.publicUrl}/${method.parent.typeName}/${method.name}`,
      trusted,
      messageProves: messageProves(method),
      certificate: contextValues.get(clientCertificateKey),
    };
    const proving = proveIdentity(options, presented);
    const caller = authenticate(options, presented, proving instanceof Promise ? await proving : proving);
    contextValues.set(callerKey, caller);
    contextValues.set(credentialsKey, options.credentials);
    return await next(request);
  };
  return (next) => (request) =>
    exempt.has(request.service.typeName) ? next(request) : identified(next, request);
}

const provingMethods = new WeakMap<DescMethod, boolean>();

/** Whether the contract of a method says that the request's message proves the caller. */
function messageProves(method: DescMethod): boolean {
  let proves = provingMethods.get(method);
  if (proves === undefined) {
    proves = hasOption(method, message_proves_caller) && getOption(method, message_proves_caller);
    provingMethods.set(method, proves);
  }
  return proves;
}
