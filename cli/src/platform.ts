import { createBus } from "@depute/bus";
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
  readSettings,
  type SettingsTable,
  type StoreLostError,
} from "@depute/service";
import { MODULES } from "./modules.ts";
import { requireFree } from "./ports.ts";
import { withoutUnused } from "./unused-settings.ts";

/** Services that run in this process, with everything that was opened for them. */
export interface Platform {
  readonly host: Host;
  readonly settings: CommonSettings;
  readonly log: Logger;
  /** Drains, closes everything; the same promise for every call. */
  stop(): Promise<void>;
}

/** Which services to run, and which of them listen; the others are reached only from within the process. */
export interface PlatformOptions {
  readonly modules: readonly ModuleName[];
  readonly listen: readonly ModuleName[];
  /** Flags, as on the command line; they win over the environment. */
  readonly args: readonly string[];
  /** For --help and for traces. */
  readonly name: string;
  readonly description: string;
  /** Settings that have no effect, and why; given ones are refused. */
  readonly unused?: Readonly<Record<string, string>>;
}

/**
 * Starts services in this process as the settings say.
 *
 * @throws SettingsError, HelpRequested; whatever a service's start throws
 */
export async function startPlatform(options: PlatformOptions): Promise<Platform> {
  const { modules, listen, args, name, description, unused = {} } = options;
  const whole = mergeSettings(commonSettings, ...modules.map((module) => MODULES[module].settings));
  const table = withoutUnused(whole, unused, args);
  const settings = {
    ...defaultsOf(whole, Object.keys(unused)),
    ...readSettings(table, args, { name, description }),
  } as CommonSettings;
  for (const module of listen) await requireFree(settings.host, portOf(settings, module), `${module}Port`);
  const log = createLogger({ level: settings.logLevel, name });
  const bus = createBus({
    redisUrl: settings.redisUrl === "" ? undefined : settings.redisUrl,
    onError: (err, what) => log.warn({ err }, what),
  });
  const host = await hostServices({
    modules: modules.map((module) => ({
      module: MODULES[module],
      settings,
      listen: listen.includes(module),
    })),
    common: settings,
    bus,
    log,
    name,
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

/** Milliseconds in which callers are still told that the store is lost. */
const LAST_ANSWERS_MS = 250;

/**
 * Ends the process, and closes nothing: SQLite would fold its log into files, and remove files, that may be another
 * database's by now.
 */
function endWithoutStore(log: Logger, error: StoreLostError): void {
  log.fatal({ err: error }, "a store is lost; the process ends");
  console.error(`depute: ${error.detail}. The process ends, because what it would store would be lost.`);
  setTimeout(() => process.exit(1), LAST_ANSWERS_MS);
}

function defaultsOf(table: SettingsTable, names: readonly string[]): Record<string, unknown> {
  return Object.fromEntries(names.map((name) => [name, table[name]?.default]));
}
