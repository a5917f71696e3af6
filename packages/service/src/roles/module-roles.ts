import type { ServiceInstance, ServiceModule } from "../module.ts";

/** Returns the options of `serverInterceptors` about the roles of a module's callers. */
export function rolesOptions(
  { forwards = {} }: ServiceModule,
  { rolesBySettings, onRoleDenied }: ServiceInstance,
) {
  const forwarded = new Set(
    Object.values(forwards).flatMap((services) => services.map((each) => each.typeName)),
  );
  return { forwarded, ...(rolesBySettings && { rolesBySettings }), ...(onRoleDenied && { onRoleDenied }) };
}
