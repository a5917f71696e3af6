import { randomBytes } from "node:crypto";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import {
  type CommonSettings,
  commonSettings,
  createLogger,
  envName,
  mergeSettings,
  onStopSignal,
  portOf,
  readSettings,
  SERVICES,
  type Setting,
  SettingsError,
  type SettingsTable,
} from "@depute/service";
import { MODULE_NAMES, MODULES } from "../modules.ts";
import { requireFree } from "../ports.ts";
import { type Child, startChild } from "../processes.ts";
import { findRedis, startRedis } from "../redis.ts";
import { welcome } from "../welcome.ts";

const MAIN = join(fileURLToPath(import.meta.url), "../../main.ts");

/**
 * `depute cluster`: five processes apart, and Redis between them, from one set of settings.
 *
 * A Redis that DEPUTE_REDIS_URL names is used; without one, a `redis-server` of the PATH is started.
 */
export async function cluster(args: readonly string[]): Promise<void> {
  const table = mergeSettings(commonSettings, ...MODULE_NAMES.map((name) => MODULES[name].settings));
  const settings = readSettings(table, args, {
    name: "depute cluster",
    description: "Runs the five services in processes of their own, with Redis for wake-ups.",
  }) as CommonSettings;
  for (const name of MODULE_NAMES) {
    await requireFree(settings.host, portOf(settings, name), `${name}Port`);
  }
  const log = createLogger({ level: settings.logLevel, name: "depute cluster" });
  const children: Child[] = [];
  const stop = async () => {
    // The gateway first, so that nobody calls what is going away.
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
    const shared = environment(table, settings, redisUrl);
    for (const name of MODULE_NAMES) {
      children.push(
        await startChild(name, process.execPath, [MAIN, "serve", name], shared, `${name} listens on `),
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
  console.log(welcome(`http://${settings.host}:${portOf(settings, "gateway")}`, settings));
  console.log(SERVICES.map((name) => `  ${name.padEnd(10)}${shown(settings, name)}`).join("\n"));
}

function shown(settings: CommonSettings, name: (typeof SERVICES)[number]): string {
  return `http://${settings.host}:${portOf(settings, name)}`;
}

/** What all processes are told: every setting, where the others are, and the secret by which they know one another. */
function environment(table: SettingsTable, settings: CommonSettings, redisUrl: string): NodeJS.ProcessEnv {
  const told: Record<string, unknown> = {
    ...settings,
    redisUrl,
    publicUrl: settings.publicUrl || `http://${settings.host}:${portOf(settings, "gateway")}`,
    internalSecret: settings.internalSecret || randomBytes(32).toString("base64url"),
  };
  for (const name of SERVICES) told[`${name}Url`] = shown(settings, name);
  const own = Object.entries(table).map(([name, setting]) => [envName(name), written(setting, told[name])]);
  return { ...process.env, ...Object.fromEntries(own) };
}

/** A value as its variable has it. */
function written(setting: Setting, value: unknown): string {
  if (setting.type === "duration") return `${value}ms`;
  return Array.isArray(value) ? value.join(",") : String(value);
}
