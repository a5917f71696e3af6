import { randomBytes } from "node:crypto";
import { fileURLToPath } from "node:url";
import {
  addressOf,
  type CommonSettings,
  createLogger,
  envName,
  onStopSignal,
  portOf,
  readSettings,
  SERVICES,
  type Setting,
  SettingsError,
  type SettingsTable,
  secretFileVariable,
} from "@depute/service";
import { readConfigFile } from "../config/config-file.ts";
import { MODULE_NAMES, platformSettings } from "../modules.ts";
import { requireFree } from "../ports.ts";
import { type Child, startChild } from "../processes.ts";
import { findRedis, startRedis } from "../redis.ts";
import { welcome } from "../welcome.ts";

const MAIN = fileURLToPath(new URL("../main.ts", import.meta.url));

/**
 * `depute cluster`: starts five processes and a Redis that connects them, from one set of settings. It uses the Redis
 * of DEPUTE_REDIS_URL, or else starts a `redis-server` from the PATH.
 */
export async function cluster(args: readonly string[]): Promise<void> {
  const table = platformSettings();
  const program = {
    name: "depute cluster",
    description: "Runs the five services in processes of their own, with Redis for wake-ups.",
  };
  const settings = readSettings(table, args, program, await readConfigFile(args, table)) as CommonSettings;
  for (const name of MODULE_NAMES) {
    await requireFree(settings.host, portOf(settings, name), `${name}Port`);
  }
  const log = createLogger({ level: settings.logLevel, name: "depute cluster" });
  const children: Child[] = [];
  const stop = async () => {
    // Stops the gateway first, so that no call reaches a service that is stopping.
    for (const child of children.toReversed()) await child.stop(settings.drainTimeout + 2_000);
  };
  try {
    let redisUrl = settings.redisUrl;
    if (redisUrl === "") {
      if (!findRedis()) {
        throw new SettingsError("there is no redis-server on the PATH: install one, or set DEPUTE_REDIS_URL");
      }
      const redis = await startRedis();
      children.push(redis.child);
      redisUrl = redis.url;
    }
    // Each process serves its metrics on its own port, because all of them share one machine.
    const shared = { ...environment(table, settings, redisUrl), [envName("metricsPort")]: "0" };
    for (const name of MODULE_NAMES) {
      // Only the gateway listens on the Unix socket, because only clients use it. The other processes call each other
      // over TCP.
      const env = name === "gateway" ? shared : { ...shared, [envName("socketDir")]: "" };
      children.push(
        await startChild(
          name,
          process.execPath,
          [...process.execArgv, MAIN, "serve", name],
          env,
          `${name} listens on `,
        ),
      );
    }
  } catch (error) {
    await stop();
    throw error;
  }
  onStopSignal(log, stop);
  for (const child of children) {
    const ended = child.exited.then(async (how) => {
      if (child.stopping) return;
      log.fatal({ process: child.name, how }, "a process ended; stopping the others");
      process.exitCode = 1;
      await stop();
    });
    ended.catch((err: unknown) => log.fatal({ err }, "stopping the other processes failed"));
  }
  console.log(welcome(addressOf(settings, "gateway"), settings));
  console.log(SERVICES.map((name) => `  ${name.padEnd(10)}${addressOf(settings, name)}`).join("\n"));
}

/**
 * The environment of all processes: every setting, the other processes' addresses, and the secret that
 * authenticates calls between these processes.
 */
function environment(table: SettingsTable, settings: CommonSettings, redisUrl: string): NodeJS.ProcessEnv {
  const told: Record<string, unknown> = {
    ...settings,
    redisUrl,
    // The variables contain the values of the file.
    configFile: "",
    publicUrl: settings.publicUrl || addressOf(settings, "gateway"),
    internalSecret: settings.internalSecret || randomBytes(32).toString("base64url"),
  };
  for (const name of SERVICES) told[`${name}Url`] = addressOf(settings, name);
  const ownVariables = Object.entries(table).map(([name, setting]) => [
    envName(name),
    written(setting, told[name]),
  ]);
  // The variables already contain the secrets. A process refuses a secret that also has a file, so the variables that
  // name files are cleared.
  const secretFiles = Object.keys(table).map((name) => [secretFileVariable(name), ""]);
  return { ...process.env, ...Object.fromEntries([...ownVariables, ...secretFiles]) };
}

/** The value of a setting in the form of its environment variable. */
function written(setting: Setting, value: unknown): string {
  if (setting.type === "duration") return `${value}ms`;
  return Array.isArray(value) ? value.join(",") : String(value);
}
