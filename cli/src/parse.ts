import { type ParseArgsOptionsConfig, parseArgs } from "node:util";
import { CommandError } from "./exit-codes.ts";
import type { Command, Invocation, Parameter } from "./table/command.ts";
import { flagsOf } from "./table/commands.ts";

/** If a misspelled word is longer than this, in characters, the error suggests no similar word. */
const MAX_SUGGESTED = 64;
/** Matches a public key in base64url that begins with a hyphen, as one key in 64 does. No flag has that length. */
const KEY_LIKE_FLAG = /^-[A-Za-z0-9_-]{42}$/;
/**
 * The parser puts this mark before a key with a leading hyphen, so that the key does not look like a flag. No word of a
 * command line contains this character.
 */
const MARK = "\0";

/**
 * Parses the words after a command's path.
 *
 * @returns undefined if the words ask for help
 * @throws CommandError that names the word at fault
 */
export function parseInvocation(command: Command, words: readonly string[]): Invocation | undefined {
  const flags = flagsOf(command);
  const { own, rest } = splitRest(command, words);
  const { values, positionals } = parsed(command, own, optionsOf(flags));
  if (values.help === true) return undefined;
  const givenValues: Record<string, string | boolean | readonly string[]> = {};
  for (const [name, { default: preset }] of Object.entries(flags)) {
    const value = values[name] ?? preset;
    if (value !== undefined) givenValues[name] = value as string | boolean | string[];
  }
  const args = command.args ?? [];
  for (const [index, argument] of args.entries()) {
    const value = positionals[index];
    if (value !== undefined) givenValues[argument.name] = value;
    else if (argument.required) throw usage(command, `${argument.name} is missing`);
  }
  const extra = positionals[args.length];
  if (extra !== undefined)
    throw usage(command, `${JSON.stringify(extra)} is not an argument of this command`);
  for (const [name, parameter] of parametersOf(command)) check(command, name, parameter, givenValues[name]);
  return { command, values: givenValues, rest };
}

/** Returns the arguments and flags of a command, each with its name. */
export function parametersOf(command: Command): (readonly [name: string, parameter: Parameter])[] {
  return [
    ...(command.args ?? []).map((argument) => [argument.name, argument] as const),
    ...Object.entries(flagsOf(command)),
  ];
}

function splitRest(command: Command, words: readonly string[]) {
  const end = command.rest === undefined ? -1 : words.indexOf("--");
  if (end < 0) return { own: words, rest: [] };
  return { own: words.slice(0, end), rest: words.slice(end + 1) };
}

function optionsOf(flags: Readonly<Record<string, Parameter>>): ParseArgsOptionsConfig {
  return Object.fromEntries(
    Object.entries(flags).map(([name, { type, repeated = false, short }]) => [
      name,
      { type: type === "bool" ? "boolean" : "string", multiple: repeated, ...(short && { short }) } as const,
    ]),
  );
}

function parsed(command: Command, words: readonly string[], options: ParseArgsOptionsConfig) {
  try {
    const args = words.map((word) => (KEY_LIKE_FLAG.test(word) ? MARK + word : word));
    const { values, positionals } = parseArgs({ args, options, allowPositionals: true, strict: true });
    return {
      values: Object.fromEntries(Object.entries(values).map(([name, value]) => [name, unmarked(value)])),
      positionals: positionals.map(unmarked),
    };
  } catch (error) {
    const [sentence = ""] = (error as Error).message.split(/\. |\n/);
    throw usage(command, sentence.charAt(0).toLowerCase() + sentence.slice(1));
  }
}

/** Removes the mark from a value, or from each value of a repeated flag. */
function unmarked<T>(value: T): T {
  if (Array.isArray(value)) return value.map(unmarked) as T;
  return (typeof value === "string" && value.startsWith(MARK) ? value.slice(MARK.length) : value) as T;
}

function check(command: Command, name: string, { type, required, values }: Parameter, given: unknown): void {
  const label = name === name.toUpperCase() ? name : `--${name}`;
  if (given === undefined) {
    if (required) throw usage(command, `${label} is missing`);
    return;
  }
  if (type !== "enum" || values === undefined) return;
  for (const value of Array.isArray(given) ? given : [given]) {
    if (!values.includes(value)) {
      throw usage(command, `${label} is ${JSON.stringify(value)}, but must be one of ${values.join(", ")}`);
    }
  }
}

function usage(command: Command, problem: string): CommandError {
  return new CommandError(`${problem}; see depute ${command.path} --help`);
}

/**
 * Returns the known name that is most similar to a misspelled name; undefined if every name differs in more than two
 * letters, or if the word is longer than MAX_SUGGESTED.
 */
export function nearest(word: string, names: readonly string[]): string | undefined {
  if (word.length > MAX_SUGGESTED) return undefined;
  const near = names.map((name) => [distance(word, name), name] as const).sort(([a], [b]) => a - b)[0];
  return near !== undefined && near[0] <= 2 ? near[1] : undefined;
}

/** Returns the Levenshtein distance: the number of letters to insert, delete or replace in `a` to get `b`. */
function distance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const replaced = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min(replaced, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1));
    }
    row = next;
  }
  return row[b.length] ?? 0;
}
