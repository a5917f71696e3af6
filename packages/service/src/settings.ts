import { Command, CommanderError, InvalidArgumentError, Option } from "commander";
import { parseBoolean, parseDuration, parseInteger, parseList, parseUrl } from "./setting-values.ts";

interface Common<Type extends string, Default> {
  readonly type: Type;
  /** Of a duration, as it is written: `30s`. */
  readonly default: Default;
  /** What it does, with its unit, for --help. */
  readonly help: string;
  /** The heading that --help shows it under. */
  readonly group?: string;
}

/** One setting, as a service declares it. */
export type Setting =
  | (Common<"string", string> & { readonly choices?: readonly string[] })
  | (Common<"int", number> & { readonly min?: number; readonly max?: number })
  | Common<"duration", string>
  | Common<"bool", boolean>
  | Common<"list", readonly string[]>
  | Common<"url", string>;

/** Settings by their names in camel case: `leaseTimeout` is `DEPUTE_LEASE_TIMEOUT` and `--lease-timeout`. */
export type SettingsTable = Readonly<Record<string, Setting>>;

type ValueOf<S extends Setting> = S extends { type: "string"; choices: readonly (infer Choice)[] }
  ? Choice
  : S["type"] extends "int" | "duration"
    ? number
    : S["type"] extends "bool"
      ? boolean
      : S["type"] extends "list"
        ? readonly string[]
        : string;

/** The values of a table: durations in milliseconds. */
export type Settings<Table extends SettingsTable> = { readonly [Name in keyof Table]: ValueOf<Table[Name]> };

/** Only tells the compiler to keep the table's own types. */
export function defineSettings<const Table extends SettingsTable>(table: Table): Table {
  return table;
}

/** A setting that cannot be used; the message names it and says what would be right. */
export class SettingsError extends Error {
  override readonly name = "SettingsError";
}

/** --help was asked for; `text` is the answer. */
export class HelpRequested extends Error {
  override readonly name = "HelpRequested";
  readonly text: string;

  constructor(text: string) {
    super("help was asked for");
    this.text = text;
  }
}

/** The variable of a setting: `leaseTimeout` is `DEPUTE_LEASE_TIMEOUT`. */
export function envName(name: string): string {
  return `DEPUTE_${name.replace(/[A-Z]/g, "_$&").toUpperCase()}`;
}

/** The flag of a setting: `leaseTimeout` is `--lease-timeout`. */
export function flagName(name: string): string {
  return `--${name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
}

/**
 * One table of several, for a process that hosts several services.
 *
 * @throws SettingsError when two of them mean different things by one name
 */
export function mergeSettings(...tables: SettingsTable[]): SettingsTable {
  const merged: Record<string, Setting> = {};
  for (const [name, setting] of tables.flatMap((table) => Object.entries(table))) {
    const known = merged[name];
    if (known !== undefined && JSON.stringify(known) !== JSON.stringify(setting)) {
      throw new SettingsError(`the setting ${name} is declared twice, differently`);
    }
    merged[name] = setting;
  }
  return merged;
}

/** Adds a flag and a variable for each setting of the table to a command. A flag wins over its variable. */
export function addSettings(command: Command, table: SettingsTable): Command {
  for (const [name, setting] of Object.entries(table)) command.addOption(optionOf(name, setting));
  return command;
}

/** The values of a command that was parsed. Durations are in milliseconds. */
export function settingsOf<Table extends SettingsTable>(command: Command, table: Table): Settings<Table> {
  const values: Record<string, unknown> = command.optsWithGlobals();
  return Object.fromEntries(Object.keys(table).map((name) => [name, values[name]])) as Settings<Table>;
}

/**
 * Reads a table's values from flags, the process's environment, and defaults, in this order.
 *
 * @param args flags, without the program's name
 * @throws SettingsError naming the setting at fault; HelpRequested for --help
 */
export function readSettings<Table extends SettingsTable>(
  table: Table,
  args: readonly string[],
  about: { name: string; description?: string },
): Settings<Table> {
  let output = "";
  const command = new Command(about.name)
    .description(about.description ?? "")
    .exitOverride()
    .allowExcessArguments(false)
    .configureOutput({ writeOut: (text) => (output += text), writeErr: () => {} });
  addSettings(command, table);
  try {
    command.parse(args, { from: "user" });
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    if (error.code === "commander.helpDisplayed") throw new HelpRequested(output);
    throw new SettingsError(error.message.replace(/^error: /, ""), { cause: error });
  }
  return settingsOf(command, table);
}

function optionOf(name: string, setting: Setting): Option {
  const placeholder = setting.type === "bool" ? "[bool]" : `<${setting.type}>`;
  const option = new Option(`${flagName(name)} ${placeholder}`, setting.help).env(envName(name));
  option.default(defaultOf(setting), describeDefault(setting));
  if (setting.group !== undefined) option.helpGroup(setting.group);
  if (setting.type === "bool") option.preset("true");
  // An empty variable is how compose files say "not set", so it leaves the default, except where empty is a value.
  const emptyCounts = setting.type === "string" || setting.type === "list" || setting.type === "url";
  option.argParser((text: string, previous: unknown) => {
    if (text === "" && !emptyCounts) return previous;
    try {
      return parse(setting, text);
    } catch (error) {
      throw new InvalidArgumentError((error as Error).message);
    }
  });
  // argParser forgets them; --help shows them.
  if (setting.type === "string" && setting.choices !== undefined) option.argChoices = [...setting.choices];
  return option;
}

function parse(setting: Setting, text: string): unknown {
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
  if (setting.type === "list") return JSON.stringify(setting.default.join(","));
  return setting.type === "duration" ? setting.default : JSON.stringify(setting.default);
}
