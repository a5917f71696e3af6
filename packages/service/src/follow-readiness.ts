import type { HealthState } from "./health.ts";
import type { ServiceModule } from "./module.ts";
import type { ServiceName } from "./names.ts";
import type { Readiness } from "./readiness.ts";

type Forwarding = Pick<ServiceModule, "name" | "descriptors" | "forwards">;

/** Returns the services whose contracts a module serves by calling them. */
export function forwardedServices({ forwards = {} }: Forwarding): ServiceName[] {
  return Object.keys(forwards) as ServiceName[];
}

/**
 * Keeps the health of a server up to date. A forwarded contract is healthy if the service behind it is ready. The
 * module's own RPC services are healthy only if the module and all services behind it are ready.
 *
 * @param stopping aborts when the process drains; after that, the function changes no health
 */
export function followReadiness(
  health: HealthState,
  module: Forwarding,
  readiness: Readiness,
  stopping: AbortSignal,
): void {
  const behind = new Map<string, ServiceName>();
  for (const name of forwardedServices(module)) {
    for (const { typeName } of module.forwards?.[name] ?? []) behind.set(typeName, name);
  }
  const follow = () => {
    if (stopping.aborted) return;
    const isAllReady = [module.name, ...forwardedServices(module)].every((name) => readiness.isReady(name));
    for (const { typeName } of module.descriptors) {
      const owner = behind.get(typeName);
      health.set(owner === undefined ? isAllReady : readiness.isReady(owner), typeName);
    }
  };
  readiness.onChange(follow);
  follow();
}
