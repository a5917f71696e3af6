import type { CommonSettings } from "./common-settings.ts";
import type { HealthState } from "./health.ts";
import type { Registry } from "./metrics.ts";
import { operationsRoutes, type ServedMetrics } from "./operations.ts";
import { type Server, type ServerOptions, startServer } from "./server.ts";

/** Maximum number of connections to the metrics port, and maximum number of concurrent requests on each connection. */
const MAX_CONNECTIONS = 32;

type Health = Pick<HealthState, "serving" | "services" | "parts">;

interface MetricsDeps extends Required<Pick<ServerOptions, "certificates" | "random" | "log" | "timers">> {
  readonly metrics: Registry;
  /** The health of each server of the process. */
  readonly health: readonly Health[];
}

/** Returns the metrics for the ports of services; undefined if the metrics have their own port. */
export function metricsOnServicePorts(
  { metricsPort, metricsToken: token }: CommonSettings,
  registry: Registry,
): ServedMetrics | undefined {
  return metricsPort === 0 ? { registry, token } : undefined;
}

/** Starts the port of the metrics and of the process's health, if the settings name one. */
export async function startMetrics(
  { host, metricsPort: port, metricsToken: token }: CommonSettings,
  { metrics, health, ...deps }: MetricsDeps,
): Promise<Server[]> {
  if (port === 0) return [];
  const limits = { maxConnections: MAX_CONNECTIONS, maxConcurrentStreams: MAX_CONNECTIONS };
  const routes = operationsRoutes(healthOf(health), { registry: metrics, token });
  return [await startServer({ place: { host, port }, rpc: () => false, routes, ...limits, ...deps })];
}

/** Returns the health of the process: healthy only if all its servers are healthy. */
function healthOf(services: readonly Health[]): Health {
  const merged = (of: (health: Health) => ReadonlyMap<string, boolean>) =>
    new Map(services.flatMap((health) => [...of(health)]));
  return {
    get serving() {
      return services.every(({ serving }) => serving);
    },
    get services() {
      return merged((health) => health.services);
    },
    get parts() {
      return merged((health) => health.parts);
    },
  };
}
