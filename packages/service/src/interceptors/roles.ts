import type { DescMethod } from "@bufbuild/protobuf";
import type { Interceptor } from "@connectrpc/connect";
import { roleCheckKey, rolesOpenKey } from "../call-values.ts";
import { type Caller, callerKey } from "../caller.ts";
import { type RoleSources, requireRole } from "../roles/caller-roles.ts";
import { type MethodRoles, rolesOfMethod } from "../roles/method-roles.ts";
import type { Next, Request } from "./outcome.ts";

/** Called for each call that the service refuses for missing roles, before the refusal. */
export type OnRoleDenied = (denied: { readonly method: DescMethod; readonly principal: string }) => void;

export interface RolesOptions extends RoleSources {
  /** Full names of services that other processes implement. Those processes check the roles of their methods. */
  readonly forwarded: ReadonlySet<string>;
  /** Records a denial; absent if the module has an audit trail, which records denials. */
  readonly onDenied?: OnRoleDenied;
}

/**
 * Refuses calls of callers without a role that the method requires. An option of the method in its contract names these
 * roles, for every protocol. For a holder proof, a token or a message, the check waits until the principal is proven;
 * see {@link roleCheckKey}.
 */
export function rolesInterceptor({ forwarded, onDenied, ...sources }: RolesOptions): Interceptor {
  const checked = async (next: Next, request: Request, required: MethodRoles, caller: Caller) => {
    const { method, contextValues } = request;
    if (forwarded.has(method.parent.typeName)) {
      contextValues.set(rolesOpenKey, !isAdmitted(required, caller, sources));
      return next(request);
    }
    const check = (principal: string) => {
      try {
        requireRole(required, caller, principal, sources);
      } catch (refusal) {
        onDenied?.({ method, principal });
        throw refusal;
      }
    };
    if (caller.kind === "bound" || caller.kind === "message") contextValues.set(roleCheckKey, check);
    else check(caller.principal);
    return next(request);
  };
  return (next) => (request) => {
    const required = rolesOfMethod(request.method);
    const caller = request.contextValues.get(callerKey);
    return required.isForAny || caller === undefined
      ? next(request)
      : checked(next, request, required, caller);
  };
}

/**
 * Whether the files and this module's settings give the caller a required role. The settings of another process may
 * give the caller further roles.
 */
function isAdmitted(required: MethodRoles, caller: Caller, sources: RoleSources): boolean {
  try {
    requireRole(required, caller, caller.principal, sources);
    return true;
  } catch {
    return false;
  }
}
