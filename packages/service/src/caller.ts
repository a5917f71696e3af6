import { type ContextKey, createContextKey } from "@connectrpc/connect";
import { DeputeError, ErrorReason } from "@depute/core";
import { principalKey, type WithValues } from "./call-values.ts";
import { type Credentials, noCredentials } from "./credentials.ts";
import type { RoleName } from "./identities/identities-schema.ts";
import { grantedRoles } from "./roles/caller-roles.ts";

/** The caller of a method. */
export interface Caller {
  /**
   * `local`: a caller without credentials where none are required, or a service of the platform on its own behalf; the
   * caller may act for every agent. `credential`: a configured secret, a login token (JWT) of a trusted issuer or a
   * client certificate; a file names the principal of the credential. `bound`: an unverified DelegateOS token or holder
   * proof; the principal stays empty until the tokens service verifies it. `message`: no credentials, at a method whose
   * request can prove its sender (depute.rpc.v1.message_proves_caller); the method itself identifies the caller.
   */
  readonly kind: "local" | "credential" | "bound" | "message";
  readonly principal: string;
  /**
   * The organization that owns the records that the call creates; absent for none. A configured credential names the
   * organization. A service of the platform names the organization of the record that the service works on. For a
   * caller with a public key, use {@link organizationOf}.
   */
  readonly organization?: string;
  /** The roles that a file grants to the caller's secret, login token or client certificate; absent without a grant. */
  readonly roles?: readonly RoleName[];
  /** The roles that the identities file grants for the records of the caller's organization; absent for none. */
  readonly organizationRoles?: readonly RoleName[];
  /** True if the identities file maps the caller's login token or client certificate to the principal. */
  readonly isAttested?: true;
  /**
   * The SPIFFE id of the client certificate that authenticated the caller; absent for other credentials. Depute's
   * processes forward the id to each other.
   */
  readonly spiffeId?: string;
  /** The token of `Authorization: DPoP <token>`, for kind `bound`. */
  readonly token?: string;
  /** The holder proof of the `DPoP` header (RFC 9449), for kind `bound`. */
  readonly proof?: string;
  /** The HTTP method that a holder proof must name: the method with which the client called the platform. */
  readonly htm: string;
  /** The URL that a holder proof must name: the URL that the client called, without its query. */
  readonly htu: string;
}

/** The principal of callers without credentials. */
export const LOCAL_PRINCIPAL = "local";

export const callerKey: ContextKey<Caller | undefined> = createContextKey<Caller | undefined>(undefined, {
  description: "caller",
});

/**
 * Returns the caller of the call that a handler answers.
 *
 * @throws DeputeError UNAUTHENTICATED when no interceptor set a caller: a missing check must fail closed
 */
export function callerOf(context: WithValues): Caller {
  const caller = context.values.get(callerKey);
  if (caller === undefined) throw new DeputeError(ErrorReason.UNAUTHENTICATED, "the call has no caller");
  return caller;
}

export const credentialsKey: ContextKey<Credentials> = createContextKey<Credentials>(noCredentials, {
  description: "credentials",
});

/**
 * Returns the organization that owns the records of a proven principal, as the credentials file names it.
 *
 * @returns empty for none
 */
export function organizationOf(context: WithValues, principal: string): string {
  return context.values.get(credentialsKey).organizationOf(principal);
}

/**
 * Returns the roles that the credentials file or the identities file grants to the caller of a call; empty for none.
 *
 * @param principal the caller's proven principal
 */
export function grantedRolesOf(context: WithValues, principal: string): readonly RoleName[] {
  const { values } = context;
  return grantedRoles(values.get(callerKey) ?? {}, principal, values.get(credentialsKey)) ?? [];
}

/** Returns the organization of a call's caller. Empty if the caller has none, or if its principal is not proven yet. */
export function organizationOfCaller(context: WithValues): string {
  const { organization } = context.values.get(callerKey) ?? {};
  return organization ?? organizationOf(context, context.values.get(principalKey));
}
