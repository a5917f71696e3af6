import { readFileSync, statSync } from "node:fs";
import { envName, type FileValues, flagName, SettingsError, type SettingsTable } from "@depute/service";
import type { ParsedConfig } from "./parse-config.ts";

/** The setting that names the file. */
const OWN_NAME = "configFile";
/** Maximum size of the file in bytes. */
const MAX_BYTES = 1_000_000;
/** The bits of a file's mode that let users other than the owner read the file. */
const OTHERS_READ = 0o044;

/** The file of settings, parsed; without values if no file is named. */
export interface ConfigFile extends ParsedConfig {
  /** The path; undefined if flags and variables name no file. */
  readonly path: string | undefined;
}

/**
 * Reads the file that `--config-file` or DEPUTE_CONFIG_FILE names. One file serves all processes of a platform, so it may
 * have the settings of any service.
 *
 * @param table the settings of all services, or their import, which is called only if there is a file
 * @throws SettingsError that names file, line, setting and reason of the first invalid setting
 */
export async function readConfigFile(
  args: readonly string[],
  table: SettingsTable | (() => Promise<SettingsTable>),
): Promise<FileValues> {
  const { values, problems } = await openConfigFile(args, table);
  if (problems[0] !== undefined) throw new SettingsError(problems[0]);
  return values;
}

/** Reads the file as `readConfigFile` does, and returns all problems instead of throwing the first. */
export async function openConfigFile(
  args: readonly string[],
  table: SettingsTable | (() => Promise<SettingsTable>),
): Promise<ConfigFile> {
  const path = pathOf(args);
  if (path === "") return { path: undefined, values: {}, problems: [] };
  const settings = typeof table === "function" ? await table() : table;
  try {
    const { size, mode } = statSync(path);
    if (size > MAX_BYTES) return { path, values: {}, problems: [`${path}: exceeds ${MAX_BYTES} bytes`] };
    const isPrivate = process.platform === "win32" || (mode & OTHERS_READ) === 0;
    // The parser is loaded only for processes with a file, because most processes have none.
    const { parseConfig } = await import("./parse-config.ts");
    return { path, ...parseConfig(path, readFileSync(path, "utf8"), settings, isPrivate) };
  } catch (error) {
    const { code = "unknown error" } = error as NodeJS.ErrnoException;
    return { path, values: {}, problems: [`${path}: cannot be read (${code}); name a readable file`] };
  }
}

function pathOf(args: readonly string[]): string {
  const flag = flagName(OWN_NAME);
  for (const [index, arg] of args.entries()) {
    if (arg === flag) return args[index + 1] ?? "";
    if (arg.startsWith(`${flag}=`)) return arg.slice(flag.length + 1);
  }
  return process.env[envName(OWN_NAME)] ?? "";
}
