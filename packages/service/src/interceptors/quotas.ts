import type { Interceptor } from "@connectrpc/connect";
import { chargeKey, trustedKey } from "../call-values.ts";
import { type Caller, callerKey, HOP } from "../caller.ts";
import { classOf } from "../quotas/call-class.ts";
import type { Charge, Quotas } from "../quotas/quotas.ts";
import { type Request, withHooks } from "./outcome.ts";

/**
 * Counts calls against the quotas of their callers. A call with a token or a holder proof counts only after its
 * verification. Otherwise a caller could use up another principal's quota. Calls of the platform itself and of `local`
 * have no quotas.
 */
export function quotasInterceptor(quotas: Quotas): Interceptor {
  return (next) => (request) => {
    const caller = request.contextValues.get(callerKey);
    if (caller === undefined || isExempt(caller, request)) return next(request);
    const kind = classOf(request.method);
    let charge: Charge | undefined;
    const onPrincipal = (principal: string, organization: string) => {
      charge ??= quotas.charge(kind, principal, organization);
    };
    if (caller.kind === "credential") onPrincipal(caller.principal, caller.organization ?? "");
    else request.contextValues.set(chargeKey, onPrincipal);
    if (!request.stream) return next(request);
    return withHooks(next, request, { end: () => charge?.end() });
  };
}

function isExempt({ kind }: Caller, { contextValues, header }: Request): boolean {
  return kind === "local" || (contextValues.get(trustedKey) && header.get(HOP.origin) === "service");
}
