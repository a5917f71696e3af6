import { getOption, hasOption } from "@bufbuild/protobuf";
import type { Interceptor } from "@connectrpc/connect";
import { message_proves_caller } from "@depute/contracts/depute/auth/v1/options_pb";
import { inProcessKey } from "../call-values.ts";
import { type AuthenticationOptions, authenticate, callerKey, HOP } from "../caller.ts";
import { isSecret } from "../credentials.ts";

export interface CallerOptions extends AuthenticationOptions {
  /** The address under which callers know this server, without a trailing slash; known once it listens. */
  publicUrl: () => string;
  /** The secret that the platform's processes share; empty when there is none. */
  internalSecret: string;
  /** Full names of services that answer anybody, such as `grpc.health.v1.Health`. */
  exempt: readonly string[];
}

/** Puts the Caller into the call's values, or refuses the call; see caller.ts. */
export function callerInterceptor(options: CallerOptions): Interceptor {
  const exempt = new Set(options.exempt);
  return (next) => async (request) => {
    if (exempt.has(request.service.typeName)) return next(request);
    const { header, contextValues, requestMethod, method } = request;
    const trusted =
      contextValues.get(inProcessKey) || isSecret(options.internalSecret, header.get(HOP.internal));
    const caller = authenticate(options, {
      header,
      htm: requestMethod,
      htu: `${options.publicUrl()}/${method.parent.typeName}/${method.name}`,
      trusted,
      messageProves: hasOption(method, message_proves_caller) && getOption(method, message_proves_caller),
    });
    contextValues.set(callerKey, caller);
    return next(request);
  };
}
