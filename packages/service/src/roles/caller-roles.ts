import { DeputeError, ErrorReason } from "@depute/core";
import type { Credentials } from "../credentials.ts";
import type { RoleName } from "../identities/identities-schema.ts";
import type { MethodRoles } from "./method-roles.ts";

/** The roles of a caller to which no file grants roles. Records and settings may give the caller further rights. */
export const DEFAULT_ROLES: readonly RoleName[] = ["user", "agent", "orchestrator", "reviewer", "spender"];

/** Returns the roles that the settings of a module give to a principal, in addition to the roles that files grant. */
export type RolesBySettings = (principal: string) => readonly RoleName[];

/** The sources of a caller's roles. */
export interface RoleSources {
  readonly credentials: Pick<Credentials, "rolesOf">;
  readonly bySettings: RolesBySettings;
}

/** The members of a caller on which its roles depend. */
export interface RoleHolder {
  readonly kind: "local" | "credential" | "bound" | "message";
  /** The roles that a file grants to the caller's secret, login token or client certificate; absent without a grant. */
  readonly roles?: readonly RoleName[];
  /**
   * The roles that a file grants for the records of the caller's organization. The handler restricts the caller to
   * these records.
   */
  readonly organizationRoles?: readonly RoleName[];
}

/**
 * Returns the roles that a file grants to a caller: the identities file grants roles to a login token or a client
 * certificate, the credentials file to a secret or a public key.
 *
 * @param principal the principal of the caller, as its credentials prove it
 * @returns undefined if no file grants roles
 */
export function grantedRoles(
  { roles }: Pick<RoleHolder, "roles">,
  principal: string,
  credentials: Pick<Credentials, "rolesOf">,
): readonly RoleName[] | undefined {
  return roles ?? credentials.rolesOf(principal);
}

/**
 * Requires that a caller has one of the roles that a method requires.
 *
 * A caller without credentials on an open loopback, and a service of the platform, have every role.
 *
 * @param principal the principal of the caller, as its credentials prove it
 * @throws DeputeError CALLER_NOT_ALLOWED with the metadata `roles`: the names of the method's roles
 */
export function requireRole(
  { isForAny, names }: MethodRoles,
  caller: RoleHolder,
  principal: string,
  { credentials, bySettings }: RoleSources,
): void {
  if (isForAny || caller.kind === "local") return;
  const granted = grantedRoles(caller, principal, credentials) ?? DEFAULT_ROLES;
  const { organizationRoles = [] } = caller;
  if (names.some((name) => granted.includes(name) || organizationRoles.includes(name))) return;
  const more = bySettings(principal);
  if (names.some((name) => more.includes(name))) return;
  throw roleMissing(names);
}

function roleMissing(names: readonly RoleName[]): DeputeError {
  const message =
    names.length === 0
      ? "only a service of the platform may call this method"
      : `the caller has none of the roles ${names.join(", ")}: ask an operator to grant one of them`;
  return new DeputeError(ErrorReason.CALLER_NOT_ALLOWED, message, { metadata: { roles: names.join(",") } });
}
