import type { ServiceInstance, ServiceModule } from "../module.ts";

/** Returns the options of a module for the check of roles. */
export function rolesOptions(
  { forwards = {} }: ServiceModule,
  { rolesBySettings, onRoleDenied }: ServiceInstance,
) {
  const forwarded = new Set(
    Object.values(forwards).flatMap((services) => services.map((each) => each.typeName)),
  );
  return { forwarded, ...(rolesBySettings && { rolesBySettings }), ...(onRoleDenied && { onRoleDenied }) };
}
