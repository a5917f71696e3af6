import { chmodSync, mkdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { dirname, join } from "node:path";
import { CommandError } from "../exit-codes.ts";

/** The address of a platform, and the files with the caller's credentials for that platform. */
export interface Context {
  readonly server: string;
  readonly publicUrl?: string;
  readonly caFile?: string;
  readonly clientCertFile?: string;
  readonly clientKeyFile?: string;
  readonly keyFile?: string;
  readonly tokenFile?: string;
  readonly secretFile?: string;
}

/** The content of the configuration file. */
export interface Config {
  /** Name of the selected context; absent if none is selected. */
  readonly current?: string;
  readonly contexts: Readonly<Record<string, Context>>;
}

/** Maximum size of the configuration file in bytes. */
const MAX_BYTES = 1_000_000;

const MAX_CONTEXTS = 1000;

/** The bits of a file's mode that let users other than the owner read, write or execute the file. */
const OTHERS = 0o077;

/**
 * Returns the path of the configuration file: DEPUTE_CONFIG, or `depute/config.json` in the user's folder for
 * configuration.
 */
export function configFile(env: NodeJS.ProcessEnv = process.env): string {
  const { DEPUTE_CONFIG, XDG_CONFIG_HOME, APPDATA } = env;
  if (DEPUTE_CONFIG) return DEPUTE_CONFIG;
  const folder = XDG_CONFIG_HOME || (process.platform === "win32" && APPDATA) || join(homedir(), ".config");
  return join(folder, "depute", "config.json");
}

/**
 * Reads the configuration. If the file is missing, the configuration has no contexts.
 *
 * @throws CommandError if the file cannot be used
 */
export function readConfig(file = configFile()): Config {
  const stat = statSync(file, { throwIfNoEntry: false });
  if (stat === undefined) return { contexts: {} };
  if (process.platform !== "win32" && (stat.mode & OTHERS) !== 0) {
    throw new CommandError(`${file} is accessible to other users; run chmod 600 ${file}`);
  }
  if (stat.size > MAX_BYTES) throw new CommandError(`${file} exceeds ${MAX_BYTES} bytes; delete it`);
  try {
    return checked(JSON.parse(readFileSync(file, "utf8")));
  } catch {
    throw new CommandError(`${file} is not a configuration file of depute; correct or delete it`);
  }
}

function checked(value: unknown): Config {
  const { current, contexts } = value as Partial<Config>;
  if (typeof contexts !== "object" || contexts === null || Array.isArray(contexts)) throw new TypeError();
  for (const context of Object.values(contexts)) {
    if (typeof context.server !== "string") throw new TypeError();
    if (Object.values(context).some((each) => typeof each !== "string")) throw new TypeError();
  }
  if (current !== undefined && typeof current !== "string") throw new TypeError();
  return { contexts, ...(current !== undefined && { current }) };
}

/**
 * Replaces the whole configuration file. The new file has the mode 0600.
 *
 * @throws CommandError if the configuration has more than MAX_CONTEXTS contexts
 */
export function writeConfig(config: Config, file = configFile()): void {
  if (Object.keys(config.contexts).length > MAX_CONTEXTS) {
    throw new CommandError(`there are more than ${MAX_CONTEXTS} contexts; delete some`);
  }
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
  const draft = `${file}.${process.pid}`;
  rmSync(draft, { force: true });
  writeFileSync(draft, `${JSON.stringify(config, null, 2)}\n`, { mode: 0o600, flag: "wx" });
  chmodSync(draft, 0o600);
  renameSync(draft, file);
}
