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
  /** Drains and closes everything. Every call returns the same promise. */
  stop(): Promise<void>;
}

/**
 * The services to run (`modules`), and the services among them that listen on a port (`listen`). Only the services of
 * this process can call the others.
 */
export interface PlatformOptions {
  readonly modules: readonly ModuleName[];
  readonly listen: readonly ModuleName[];
  /** The flags of the command line. They override the environment. */
  readonly args: readonly string[];
  /** The command's name in the text of --help and in traces. */
  readonly name: string;
  readonly description: string;
  /**
   * The settings that have no effect on this command, each with the reason. The command refuses to start if the user
   * sets such a setting, and shows the reason.
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
  // The file may contain settings of other services. So the import loads the settings of all services, but only if a
  // file exists.
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
  const bus = createBus({
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
 * Milliseconds between the loss of a store and the end of the process. In this time, callers still get a refusal that
 * states the loss.
 */
const LAST_ANSWERS_MS = 250;

/**
 * Ends the process without closing its stores. When SQLite closes a store, it writes and removes files at the store's
 * path. After the loss, these files may belong to another database.
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
