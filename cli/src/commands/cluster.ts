import {
  addressOf,
  type CommonSettings,
  createLogger,
  defineSettings,
  mergeSettings,
  onStopSignal,
  readSettings,
} from "@depute/service";
import { Cluster } from "../cluster/cluster.ts";
import { compactHeapOnceIdle } from "../compact-heap.ts";
import { readConfigFile } from "../config/config-file.ts";
import { platformSettings } from "../modules.ts";
import { welcome } from "../welcome.ts";

/** The settings that only `depute cluster` has. */
const clusterSettings = defineSettings({
  replicas: {
    type: "int",
    default: 1,
    min: 1,
    max: 16,
    help: "processes of each service that can have replicas; more than one need Postgres",
    group: "Where",
  },
});

/**
 * `depute cluster`: starts each service in separate processes, from one set of settings. The processes use the Redis of
 * DEPUTE_REDIS_URL and the Postgres of DEPUTE_POSTGRES_URL. If the processes need a server whose setting is empty, the
 * command starts that server on this machine. SIGHUP restarts one process after the other.
 */
export async function cluster(args: readonly string[]): Promise<void> {
  const table = platformSettings();
  const program = {
    name: "depute cluster",
    description:
      "Runs the services in processes of their own, with Redis for wake-ups, and replicas on Postgres.",
  };
  const file = await readConfigFile(args, table);
  const values = readSettings(mergeSettings(clusterSettings, table), args, program, file);
  const settings = values as unknown as CommonSettings;
  const { replicas } = values as unknown as { replicas: number };
  const log = createLogger({ level: settings.logLevel, name: "depute cluster" });
  const processes = new Cluster({ table, settings, replicas, log });
  onStopSignal(log, () => processes.stop());
  await processes.start();
  process.on("SIGHUP", () => {
    processes.restartInTurn().catch((err: unknown) => log.fatal({ err }, "restarting failed"));
  });
  console.log(welcome(addressOf(settings, "gateway"), settings));
  console.log(processes.plan.processes.map(({ name, url }) => `  ${name.padEnd(12)}${url}`).join("\n"));
  compactHeapOnceIdle();
  const { single } = processes.plan;
  if (single.length > 0) console.log(`\nOne process each, without replicas: ${single.join(", ")}`);
}
