import type { Command, Parameter } from "./table/command.ts";
import { COMMANDS, commandsOf, firstWords, flagsOf } from "./table/commands.ts";

const GROUPS = [
  ["work", "Work"],
  ["resources", "Resources"],
  ["platform", "Platform"],
  ["tools", "Tools"],
  ["settings", "Settings of the command"],
] as const;

/** Returns the text of `depute --help`. */
export function overview(): string {
  const sections = GROUPS.map(([group, title]) => {
    const rows = group === "resources" ? resources() : inGroup(group);
    return `${title}\n${aligned(rows)}`;
  });
  return `depute: delegation infrastructure for software agents

${sections.join("\n\n")}

depute COMMAND --help shows a command's flags; depute --version shows the version.
`;
}

function inGroup(group: string): [string, string][] {
  return COMMANDS.filter((each) => each.group === group && !each.hidden).map(({ path, summary }) => [
    path,
    summary,
  ]);
}

function resources(): [string, string][] {
  return firstWords().flatMap((word): [string, string][] => {
    const verbs = commandsOf(word).map(({ path }) => path.slice(word.length + 1));
    return verbs.length === 0 ? [] : [[word, verbs.join(", ")]];
  });
}

/** Returns the text of `depute RESOURCE --help`. */
export function resourceHelp(resource: string): string {
  const rows = commandsOf(resource).map(({ path, summary }): [string, string] => [path, summary]);
  return `depute ${resource}\n\n${aligned(rows)}\n\ndepute ${resource} VERB --help shows a command's flags.\n`;
}

/** Returns the usage line of a command, e.g. `depute tasks describe TASK [flags]`. */
export function usageOf(command: Command): string {
  const args = (command.args ?? []).map(({ name, required }) => (required ? name : `[${name}]`));
  const rest = command.rest === undefined ? [] : ["--", command.rest];
  return ["depute", command.path, ...args, "[flags]", ...rest].join(" ");
}

/** Returns the text of `depute COMMAND --help`. */
export function commandHelp(command: Command): string {
  const args = (command.args ?? []).map((each): [string, string] => [each.name, described(each)]);
  const flags = Object.entries(flagsOf(command)).map(([name, flag]): [string, string] => [
    flagUsage(name, flag),
    described(flag),
  ]);
  return [
    `${command.summary}.`,
    ...(command.details === undefined ? [] : [command.details]),
    `  ${usageOf(command)}`,
    ...(args.length === 0 ? [] : [`Arguments\n${aligned(args)}`]),
    `Flags\n${aligned(flags)}`,
    ...(command.example === undefined ? [] : [`Example\n  ${command.example}`]),
    "",
  ].join("\n\n");
}

/** Returns a flag in the form in which help shows it, e.g. `-o, --output FORM`. */
export function flagUsage(name: string, { type, short }: Parameter): string {
  const value = type === "bool" ? "" : ` ${type.toUpperCase()}`;
  return `${short === undefined ? "" : `-${short}, `}--${name}${value}`;
}

/** Returns a parameter's help text, with the allowed values and the default. */
export function described({ help, values, required, default: preset }: Parameter): string {
  const choices = values === undefined ? "" : ` (${values.join(", ")})`;
  const fallback = preset === undefined ? (required ? " [required]" : "") : ` [default ${preset}]`;
  return `${help}${choices}${fallback}`;
}

function aligned(rows: readonly (readonly [string, string])[]): string {
  const width = Math.max(...rows.map(([name]) => name.length));
  return rows.map(([name, text]) => `  ${name.padEnd(width)}   ${text}`).join("\n");
}
