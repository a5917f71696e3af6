import { readFileSync, statSync } from "node:fs";
import { envName, type FileValues, flagName, SettingsError, type SettingsTable } from "@depute/service";
import type { ParsedConfig } from "./parse-config.ts";

/** The setting that names the file. */
const OWN_NAME = "configFile";
/** Maximum size of the file in bytes. */
const MAX_BYTES = 1_000_000;
/** The bits of a file's mode that let users other than the owner read the file. */
const OTHERS_READ = 0o044;

/** The parsed file of settings. If no file is named, there are no values. */
export interface ConfigFile extends ParsedConfig {
  /** The path; undefined if flags and variables name no file. */
  readonly path: string | undefined;
}

/**
 * Reads the file that `--config-file` or DEPUTE_CONFIG_FILE names. One file serves all processes of a platform, so it
 * may have the settings of any service.
 *
 * @param table the settings of all services, or a function that imports them; the function is called only if there is a
 * file
 * @throws SettingsError that names file, line, setting and reason of the first invalid setting, or the reason why the
 * file cannot be read
 */
export async function readConfigFile(
  args: readonly string[],
  table: SettingsTable | (() => Promise<SettingsTable>),
): Promise<FileValues> {
  const { values, problems } = await openConfigFile(args, table);
  if (problems[0] !== undefined) throw new SettingsError(problems[0]);
  return values;
}

/** Reads the file of settings. Returns all problems, unlike `readConfigFile`, which throws the first problem. */
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
    // Most processes have no file of settings, so only processes with a file load the parser.
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
