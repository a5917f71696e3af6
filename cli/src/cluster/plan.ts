import { join } from "node:path";
import {
  addressOf,
  type CommonSettings,
  type ModuleName,
  portOf,
  SERVICES,
  type ServiceModule,
  SettingsError,
} from "@depute/service";

/** The ports of consecutive replicas of a service differ by this number. */
const PORT_STEP = 10;

/** A process that the cluster must start. */
export interface PlannedProcess {
  /** The name of the process in logs, such as `tasks` or `tasks-2`. */
  readonly name: string;
  readonly module: ModuleName;
  readonly url: string;
  /** The settings of this process that differ from the shared settings of the cluster. */
  readonly settings: Readonly<Record<string, unknown>>;
}

export interface ClusterPlan {
  readonly processes: readonly PlannedProcess[];
  /** The addresses of each service's processes, by the name of the setting that contains them. */
  readonly urls: Readonly<Record<string, readonly string[]>>;
  /** The services of which only one process may run, although the cluster has replicas. Empty without replicas. */
  readonly single: readonly ModuleName[];
}

/**
 * Plans the processes of a cluster. The ports of a service's replicas differ by ten. Several gateways share the
 * gateway's port, and each gateway also has its own port.
 *
 * @param replicas number of processes of each service that can have replicas
 * @throws SettingsError if two processes would listen on the same port
 */
export function planCluster(
  settings: CommonSettings,
  replicas: number,
  modules: Readonly<Record<ModuleName, Pick<ServiceModule, "isReplicable">>>,
): ClusterPlan {
  const names = Object.keys(modules) as ModuleName[];
  const single = replicas === 1 ? [] : names.filter((name) => modules[name].isReplicable !== true);
  const processes = names.flatMap((module) => {
    const count = single.includes(module) ? 1 : replicas;
    return Array.from({ length: count }, (_, i) => planned(settings, module, i, count));
  });
  assertApart(processes);
  const urls = Object.fromEntries(
    SERVICES.map((service) => [
      `${service}Url`,
      processes.filter(({ module }) => module === service).map(({ url }) => url),
    ]),
  );
  return { processes, urls, single };
}

function planned(settings: CommonSettings, module: ModuleName, index: number, count: number): PlannedProcess {
  const { dataDir, gatewayPort, socketDir } = settings;
  const isReplicated = count > 1;
  const sharesPort = isReplicated && module === "gateway";
  const step = PORT_STEP * (sharesPort ? index + 1 : index);
  const port = portOf(settings, module) + step;
  return {
    name: isReplicated ? `${module}-${index + 1}` : module,
    module,
    url: addressOf({ ...settings, [`${module}Port`]: port }, module),
    settings: {
      [`${module}Port`]: port,
      replicated: isReplicated,
      // The first replica has the data folder of a single process, so that it finds the existing key files.
      dataDir: index === 0 ? dataDir : join(dataDir, `replica-${index + 1}`),
      gatewaySharedPort: sharesPort ? gatewayPort : settings.gatewaySharedPort,
      // Only a gateway listens on the Unix socket, because only clients use it. The other processes call each other
      // over TCP.
      socketDir: module === "gateway" && !isReplicated ? socketDir : "",
      // Processes on one machine cannot share the metrics port, so each process serves metrics on its service's port.
      metricsPort: 0,
    },
  };
}

function assertApart(processes: readonly PlannedProcess[]): void {
  const names = new Map<string, string>();
  for (const { name, url } of processes) {
    const other = names.get(url);
    if (other !== undefined)
      throw new SettingsError(`${other} and ${name} would both listen on ${url}; choose ports further apart`);
    names.set(url, name);
  }
}
