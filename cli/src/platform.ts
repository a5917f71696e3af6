import { createBus, openSharedMemory } from "@depute/bus";
import { systemClock, systemTimers } from "@depute/core";
import {
  type CommonSettings,
  commonSettings,
  createLogger,
  type Host,
  hostServices,
  type Logger,
  type ModuleName,
  mergeSettings,
  portOf,
  readAuthorities,
  readSettings,
  type SettingsTable,
  type StoreLostError,
} from "@depute/service";
import { readConfigFile } from "./config/config-file.ts";
import { loadModules } from "./load-modules.ts";
import { requireFree } from "./ports.ts";
import { withoutUnused } from "./unused-settings.ts";
import { version } from "./version.ts";

/** The services that run in this process, and the resources that they use. */
export interface Platform {
  readonly host: Host;
  readonly settings: CommonSettings;
  readonly log: Logger;
  /** Drains and closes all services and resources. Every call returns the same promise. */
  stop(): Promise<void>;
}

/**
 * The services to run in this process (`modules`), and those of them that listen on a port (`listen`). Only the
 * services of this process can call a service that does not listen.
 */
export interface PlatformOptions {
  readonly modules: readonly ModuleName[];
  readonly listen: readonly ModuleName[];
  /** The flags of the command line. A flag has priority over an environment variable. */
  readonly args: readonly string[];
  /** The command's name for --help and for traces. */
  readonly name: string;
  readonly description: string;
  /**
   * The settings that have no effect on this command, each with the reason. If the user sets one of them, the command
   * does not start, and shows the reason.
   */
  readonly unused?: Readonly<Record<string, string>>;
}

/**
 * Starts services in this process as the settings say.
 *
 * @throws SettingsError, HelpRequested, and the errors of a service's start
 */
export async function startPlatform(options: PlatformOptions): Promise<Platform> {
  const { modules, listen, args, name, description, unused = {} } = options;
  const loaded = await loadModules(modules);
  const allSettings = mergeSettings(commonSettings, ...loaded.map((module) => module.settings));
  // The file may contain the settings of any service. If a file is configured, the import loads the settings of all
  // services.
  const file = await readConfigFile(args, async () => (await import("./modules.ts")).platformSettings());
  const table = withoutUnused(allSettings, unused, args, file);
  const settings = {
    ...defaultsOf(allSettings, Object.keys(unused)),
    ...readSettings(table, args, { name, description }, file),
  } as CommonSettings;
  if (settings.socketDir === "")
    for (const module of listen) await requireFree(settings.host, portOf(settings, module), `${module}Port`);
  const log = createLogger({ level: settings.logLevel, name });
  const redisCa = readAuthorities(settings);
  const onBusError = (err: unknown, what: string) => log.warn({ err }, what);
  const bus = await createBus({
    redisUrl: settings.redisUrl === "" ? undefined : settings.redisUrl,
    redisCa,
    ...(settings.replicated && {
      postgres: { url: settings.postgresUrl, namespace: settings.postgresSchemaPrefix },
    }),
    onError: onBusError,
  });
  const host = await hostServices({
    modules: loaded.map((module) => ({ module, settings, listen: listen.includes(module.name) })),
    common: settings,
    bus,
    ...(settings.redisUrl !== "" && {
      sharedMemory: (namespace) =>
        openSharedMemory({
          ...{ url: settings.redisUrl, ca: redisCa, namespace, onError: onBusError },
          ...{ clock: systemClock, timers: systemTimers },
        }),
    }),
    log,
    name,
    version: version(),
    onLost: (error) => endWithoutStore(log, error),
  }).catch(async (error: unknown) => {
    await bus.close();
    throw error;
  });
  let stopped: Promise<void> | undefined;
  return {
    host,
    settings,
    log,
    stop() {
      stopped ??= host.stop().then(() => bus.close());
      return stopped;
    },
  };
}

/**
 * Milliseconds between the loss of a store and the end of the process. In this time, the process still refuses calls
 * with an error that states the loss.
 */
const LAST_ANSWERS_MS = 250;

/**
 * Ends the process without closing its stores. When SQLite closes a store, it writes and removes files at the store's
 * path. After the loss, another database may be at that path.
 */
function endWithoutStore(log: Logger, error: StoreLostError): void {
  log.fatal({ err: error }, "a store is lost; the process ends");
  console.error(
    `depute: ${error.detail}. The process ends, because later writes would be lost: make the store available, then start it again.`,
  );
  setTimeout(() => process.exit(1), LAST_ANSWERS_MS);
}

function defaultsOf(table: SettingsTable, names: readonly string[]): Record<string, unknown> {
  return Object.fromEntries(names.map((name) => [name, table[name]?.default]));
}
