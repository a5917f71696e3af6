import type { HealthState } from "./health.ts";
import type { ServiceModule } from "./module.ts";
import type { ServiceName } from "./names.ts";
import type { Readiness } from "./readiness.ts";

type Forwarding = Pick<ServiceModule, "name" | "descriptors" | "forwards">;

/** The services that a module calls for what it serves. */
export function forwardedServices({ forwards = {} }: Forwarding): ServiceName[] {
  return Object.keys(forwards) as ServiceName[];
}

/**
 * Keeps what a server says of its health to what is known of the services behind it. What the module serves itself needs all
 * of them.
 *
 * @param stopping aborts when the process drains: nothing serves from then on
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
