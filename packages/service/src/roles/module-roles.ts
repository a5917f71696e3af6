import type { ServiceInstance, ServiceModule } from "../module.ts";

/** Returns what the check of roles needs of a module. */
export function rolesOptions(
  { forwards = {} }: ServiceModule,
  { rolesBySettings, onRoleDenied }: ServiceInstance,
) {
  const forwarded = new Set(
    Object.values(forwards).flatMap((services) => services.map((each) => each.typeName)),
  );
  return { forwarded, ...(rolesBySettings && { rolesBySettings }), ...(onRoleDenied && { onRoleDenied }) };
}
