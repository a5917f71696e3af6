import { getOption, hasOption } from "@bufbuild/protobuf";
import type { Interceptor } from "@connectrpc/connect";
import { message_proves_caller } from "@depute/contracts/depute/rpc/v1/method_options_pb";
import { type AuthenticationOptions, authenticate, proveIdentity } from "./authenticate.ts";
import { clientCertificateKey, inProcessKey, trustedKey } from "./call-values.ts";
import { callerKey, credentialsKey } from "./caller.ts";
import { HOP } from "./hop-headers.ts";
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
  return (next) => async (request) => {
    if (exempt.has(request.service.typeName)) return next(request);
    const { header, contextValues, requestMethod, method } = request;
    const trusted =
      contextValues.get(inProcessKey) || options.internalSecrets.accepts(header.get(HOP.internal));
    if (trusted) contextValues.set(trustedKey, true);
    const presented = {
      header,
      htm: requestMethod,
      htu: `${options.reach.publicUrl}/${method.parent.typeName}/${method.name}`,
      trusted,
      messageProves: hasOption(method, message_proves_caller) && getOption(method, message_proves_caller),
      certificate: contextValues.get(clientCertificateKey),
    };
    const proving = proveIdentity(options, presented);
    const caller = authenticate(options, presented, proving instanceof Promise ? await proving : proving);
    contextValues.set(callerKey, caller);
    contextValues.set(credentialsKey, options.credentials);
    return next(request);
  };
}
