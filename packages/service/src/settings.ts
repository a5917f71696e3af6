import { Command, CommanderError, InvalidArgumentError, Option } from "commander";
import { textOfFile } from "./files.ts";
import {
  parseBoolean,
  parseDuration,
  parseInteger,
  parseList,
  parseUrl,
  parseUrls,
} from "./setting-values.ts";

interface Common<Type extends string, Default> {
  readonly type: Type;
  /** The default value. A default duration is a text, such as `30s`. */
  readonly default: Default;
  /** The setting's effect and unit, for --help. */
  readonly help: string;
  /** The heading above the setting in --help. */
  readonly group?: string;
  /**
   * Whether the value is a secret. The variable `DEPUTE_NAME_FILE` may then name a file that contains the
   * secret.
   */
  readonly isSecret?: true;
}

/** One setting, as a service declares it. */
export type Setting =
  | (Common<"string", string> & { readonly choices?: readonly string[] })
  | (Common<"int", number> & { readonly min?: number; readonly max?: number })
  | Common<"duration", string>
  | Common<"bool", boolean>
  | Common<"list", readonly string[]>
  | Common<"url", string>
  | Common<"urls", readonly string[]>;

/**
 * Settings by name in camel case. `leaseTimeout` means the variable `DEPUTE_LEASE_TIMEOUT` and the flag
 * `--lease-timeout`.
 */
export type SettingsTable = Readonly<Record<string, Setting>>;

type ValueOf<S extends Setting> = S extends { type: "string"; choices: readonly (infer Choice)[] }
  ? Choice
  : S["type"] extends "int" | "duration"
    ? number
    : S["type"] extends "bool"
      ? boolean
      : S["type"] extends "list" | "urls"
        ? readonly string[]
        : string;

/** The values of the settings in a table. Durations are in milliseconds. */
export type Settings<Table extends SettingsTable> = { readonly [Name in keyof Table]: ValueOf<Table[Name]> };

/** The values of a file of settings, by the names of the settings. Durations are in milliseconds. */
export type FileValues = Readonly<Record<string, FileValue>>;

export interface FileValue {
  readonly value: unknown;
  /** The file and the line, for messages, such as `depute.yaml:3`. */
  readonly place: string;
}

/** Returns the table unchanged; the type parameter keeps its literal types. */
export function defineSettings<const Table extends SettingsTable>(table: Table): Table {
  return table;
}

/** An invalid setting. The message names the setting, and states how to correct it. */
export class SettingsError extends Error {
  override readonly name = "SettingsError";
}

/** Thrown for --help. `text` is the help to print. */
export class HelpRequested extends Error {
  override readonly name = "HelpRequested";
  readonly text: string;

  constructor(text: string) {
    super("help was requested");
    this.text = text;
  }
}

/** Returns the environment variable of a setting: `leaseTimeout` is `DEPUTE_LEASE_TIMEOUT`. */
export function envName(name: string): string {
  return `DEPUTE_${name.replace(/[A-Z]/g, "_$&").toUpperCase()}`;
}

/** Returns the command-line flag of a setting: `leaseTimeout` is `--lease-timeout`. */
export function flagName(name: string): string {
  return `--${name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
}

/**
 * Merges the tables of several services that share a process.
 *
 * @throws SettingsError when two tables define one name differently
 */
export function mergeSettings(...tables: SettingsTable[]): SettingsTable {
  const merged: Record<string, Setting> = {};
  for (const [name, setting] of tables.flatMap((table) => Object.entries(table))) {
    const earlier = merged[name];
    if (earlier !== undefined && JSON.stringify(earlier) !== JSON.stringify(setting)) {
      throw new SettingsError(`the setting ${name} is declared twice with different values`);
    }
    merged[name] = setting;
  }
  return merged;
}

/** Returns the variable that names the file of a secret: `internalSecret` is `DEPUTE_INTERNAL_SECRET_FILE`. */
export function secretFileVariable(name: string): string {
  return `${envName(name)}_FILE`;
}

/**
 * Adds a flag and a variable for each setting of the table to a command. A flag wins over its variable.
 *
 * @throws SettingsError if the file of a secret cannot be used
 */
export function addSettings(command: Command, table: SettingsTable, file: FileValues = {}): Command {
  for (const [name, setting] of Object.entries(table))
    command.addOption(optionOf(name, setting, file[name]?.value));
  return command;
}

/** Returns the values of a parsed command. Durations are in milliseconds. */
export function settingsOf<Table extends SettingsTable>(command: Command, table: Table): Settings<Table> {
  const values: Record<string, unknown> = command.optsWithGlobals();
  return Object.fromEntries(Object.keys(table).map((name) => [name, values[name]])) as Settings<Table>;
}

/**
 * Reads the values of a table from flags, the environment, the file of settings and defaults; the earlier source wins.
 *
 * @param args flags, without the program's name
 * @param file the values of the file of settings, by name; names that the table does not have are ignored
 * @throws SettingsError that names the invalid setting; HelpRequested for --help
 */
export function readSettings<Table extends SettingsTable>(
  table: Table,
  args: readonly string[],
  program: { name: string; description?: string },
  file?: FileValues,
): Settings<Table> {
  return readWithSources(table, args, program, file).settings;
}

/** The source of a value. */
export type SettingSource = "flag" | "variable" | "file" | "default";

/**
 * Reads the values of a table as `readSettings` does, with the source of each.
 *
 * @throws SettingsError, HelpRequested
 */
export function readWithSources<Table extends SettingsTable>(
  table: Table,
  args: readonly string[],
  program: { name: string; description?: string },
  file: FileValues = {},
): { settings: Settings<Table>; sourceOf: (name: keyof Table & string) => SettingSource } {
  let output = "";
  const command = new Command(program.name)
    .description(program.description ?? "")
    .exitOverride()
    .allowExcessArguments(false)
    .configureOutput({ writeOut: (text) => (output += text), writeErr: () => {} });
  addSettings(command, table, file);
  try {
    command.parse(args, { from: "user" });
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    if (error.code === "commander.helpDisplayed") throw new HelpRequested(output);
    const message = shortenedFlagProblem(error, table) ?? error.message.replace(/^error: /, "");
    throw new SettingsError(message, { cause: error });
  }
  const sourceOf = (name: string): SettingSource => {
    const source = command.getOptionValueSource(name);
    if (source === "cli") return "flag";
    if (source === "env" || (process.env[secretFileVariable(name)] ?? "") !== "") return "variable";
    return file[name] === undefined ? "default" : "file";
  };
  return { settings: settingsOf(command, table), sourceOf };
}

/**
 * Returns a message if the unknown flag is the end of a known flag, as `--port` is the end of `--gateway-port`;
 * undefined for any other error. Commander itself would suggest a flag with similar letters, such as `--host`.
 */
function shortenedFlagProblem({ code, message }: CommanderError, table: SettingsTable): string | undefined {
  if (code !== "commander.unknownOption") return undefined;
  const [, shortened] = /'--([a-z][a-z-]*)/.exec(message) ?? [];
  const flag = Object.keys(table)
    .map(flagName)
    .find((each) => each.endsWith(`-${shortened}`));
  return flag && `unknown option '--${shortened}'; write ${flag}`;
}

/** @param fileValue the value in the file of settings; undefined if the file does not have the setting */
function optionOf(name: string, setting: Setting, fileValue: unknown): Option {
  const placeholder = setting.type === "bool" ? "[bool]" : `<${setting.type}>`;
  const help = setting.isSecret ? `${setting.help}; or its file: ${secretFileVariable(name)}` : setting.help;
  const option = new Option(`${flagName(name)} ${placeholder}`, help).env(envName(name));
  const secret = setting.isSecret ? secretOfFile(name, setting) : undefined;
  option.default(secret ?? fileValue ?? defaultOf(setting), describeDefault(setting));
  if (setting.group !== undefined) option.helpGroup(setting.group);
  if (setting.type === "bool") option.preset("true");
  // In Compose files, an empty variable means "not set". Such a variable keeps the default, unless the type
  // allows an empty value.
  const emptyCounts = setting.type === "string" || setting.type === "list" || setting.type === "url";
  option.argParser((text: string, previous: unknown) => {
    if (text === "" && !emptyCounts) return previous;
    try {
      return parseSetting(setting, text);
    } catch (error) {
      throw new InvalidArgumentError((error as Error).message);
    }
  });
  // `argParser` has removed the choices from the option, but --help needs them.
  if (setting.type === "string" && setting.choices !== undefined) option.argChoices = [...setting.choices];
  return option;
}

/** Returns the path of the file that the environment names for a secret; empty for none. */
export function fileOfSecret(name: string): string {
  return process.env[secretFileVariable(name)] ?? "";
}

/** Returns the secret in the file that the environment names; undefined when the environment names no file. */
function secretOfFile(name: string, setting: Setting): unknown {
  const variable = secretFileVariable(name);
  const path = fileOfSecret(name);
  if (path === "") return undefined;
  if ((process.env[envName(name)] ?? "") !== "")
    throw new SettingsError(`${variable} and ${envName(name)} are both set; set one of them`);
  try {
    return readSecret(path, setting);
  } catch (cause) {
    throw new SettingsError(`${variable}: ${(cause as Error).message}`, { cause });
  }
}

/**
 * Returns the value of a secret that is the content of a file.
 *
 * @throws Error with the reason, which never quotes the secret
 */
export function readSecret(path: string, setting: Setting): unknown {
  let secret: string;
  try {
    secret = textOfFile(path).trim();
  } catch (cause) {
    const { code = "unknown error" } = cause as NodeJS.ErrnoException;
    throw new Error(`${path} cannot be read (${code}); name a readable file`, { cause });
  }
  if (secret === "") throw new Error(`${path} is empty; write the secret into it`);
  try {
    return parseSetting(setting, secret);
  } catch {
    // The parser's error is dropped, because its message may quote the secret.
    throw new Error(`${path} has no valid value; see --help`);
  }
}

/**
 * Parses the text that a flag or an environment variable has for a setting. Durations become milliseconds.
 *
 * @throws Error that states the accepted form
 */
export function parseSetting(setting: Setting, text: string): unknown {
  switch (setting.type) {
    case "string":
      if (setting.choices !== undefined && !setting.choices.includes(text)) {
        throw new Error(`write one of: ${setting.choices.join(", ")}`);
      }
      return text;
    case "int":
      return inRange(parseInteger(text), setting);
    case "duration":
      return parseDuration(text);
    case "bool":
      return parseBoolean(text);
    case "list":
      return parseList(text);
    case "url":
      return parseUrl(text);
    case "urls":
      return parseUrls(text);
  }
}

function inRange(
  value: number,
  { min = Number.MIN_SAFE_INTEGER, max = Number.MAX_SAFE_INTEGER }: RangeOf,
): number {
  if (value < min || value > max) throw new Error(`write a number from ${min} to ${max}`);
  return value;
}

type RangeOf = { readonly min?: number; readonly max?: number };

function defaultOf(setting: Setting): unknown {
  return setting.type === "duration" ? parseDuration(setting.default) : setting.default;
}

function describeDefault(setting: Setting): string {
  if (setting.type === "list" || setting.type === "urls") return JSON.stringify(setting.default.join(","));
  return setting.type === "duration" ? setting.default : JSON.stringify(setting.default);
}
