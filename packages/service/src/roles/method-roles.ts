import { type DescMethod, getOption, hasOption } from "@bufbuild/protobuf";
import { Role, roles } from "@depute/contracts/depute/rpc/v1/method_options_pb";
import { ROLES, type RoleName } from "../identities/identities-schema.ts";

/** The roles that may call a method, from the method's option `depute.rpc.v1.roles`. */
export interface MethodRoles {
  /** Whether the method requires no role, so that every caller may call it. */
  readonly isForAny: boolean;
  /**
   * The roles of callers, in the order of the option. Empty for a method that only services of the platform may call.
   */
  readonly names: readonly RoleName[];
}

/**
 * The prefix of the names of the platform's own contracts. Methods of published contracts need no roles, because they
 * call methods of the platform that have roles.
 */
const OWN_PACKAGE = "depute.";

const NAMES: ReadonlyMap<Role, RoleName> = new Map(
  ROLES.map((name) => [Role[name.toUpperCase() as keyof typeof Role], name]),
);

const known = new WeakMap<DescMethod, MethodRoles>();

/**
 * Returns the roles that may call a method. Only services of the platform may call a method of the platform's own
 * contracts without the option.
 */
export function rolesOfMethod(method: DescMethod): MethodRoles {
  let found = known.get(method);
  if (found === undefined) {
    found = read(method);
    known.set(method, found);
  }
  return found;
}

function read(method: DescMethod): MethodRoles {
  if (!hasOption(method, roles))
    return { isForAny: !method.parent.typeName.startsWith(OWN_PACKAGE), names: [] };
  const option = getOption(method, roles);
  return {
    isForAny: option.includes(Role.ANY),
    names: option.flatMap((role) => NAMES.get(role) ?? []),
  };
}
