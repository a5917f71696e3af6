import type { HealthState } from "./health.ts";
import type { ServiceModule } from "./module.ts";
import type { ServiceName } from "./names.ts";
import type { Readiness } from "./readiness.ts";

type Forwarding = Pick<ServiceModule, "name" | "descriptors" | "forwards">;

/** Returns the services that a module calls to serve its own RPCs. */
export function forwardedServices({ forwards = {} }: Forwarding): ServiceName[] {
  return Object.keys(forwards) as ServiceName[];
}

/**
 * Derives the health of a server from the known health of the services behind it. The module's own services are healthy
 * only if all of these services are.
 *
 * @param stopping aborts when the process drains; from then on no service is reported as serving
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
