import { AUTHORITY } from "./authority.ts";
import type { Command, Flags } from "./command.ts";
import { EXCHANGE } from "./exchange.ts";
import { GRANTS } from "./grants.ts";
import { LOCAL } from "./local.ts";
import { HELP_FLAG, LIST_FLAGS, REMOTE_FLAGS, WATCH_FLAG } from "./parameters.ts";
import { PROPOSALS } from "./proposals.ts";
import { REGISTRY } from "./registry.ts";
import { TASKS } from "./tasks.ts";
import { VERIFIER } from "./verifier.ts";

/** All commands. The parser, the help, the shell completion and docs/cli.md use this table. */
export const COMMANDS: readonly Command[] = [
  ...TASKS,
  ...REGISTRY,
  ...AUTHORITY,
  ...GRANTS,
  ...PROPOSALS,
  ...VERIFIER,
  ...EXCHANGE,
  ...LOCAL,
];

/** Returns the flags of a command: its own flags, and the flags that it shares with other commands. */
export function flagsOf(command: Command): Flags {
  const { call, flags = {}, remote = false } = command;
  return {
    ...flags,
    ...(call?.list && { ...WATCH_FLAG, ...LIST_FLAGS }),
    ...(remote && REMOTE_FLAGS),
    ...HELP_FLAG,
  };
}

/**
 * Returns the command whose path is at the start of the words, and the number of words in that path. Returns undefined
 * if there is no such command.
 */
export function findCommand(words: readonly string[]): { command: Command; length: number } | undefined {
  for (const length of [2, 1]) {
    const path = words.slice(0, length).join(" ");
    const command = COMMANDS.find((each) => each.path === path);
    if (command !== undefined && words.length >= length) return { command, length };
  }
  return undefined;
}

/** Returns the commands of a resource, e.g. of `tasks`, without hidden commands. */
export function commandsOf(resource: string): Command[] {
  return COMMANDS.filter(({ path, hidden = false }) => !hidden && path.startsWith(`${resource} `));
}

/** Returns the first word of each command that is not hidden. Each word occurs once. */
export function firstWords(): string[] {
  return [
    ...new Set(COMMANDS.filter(({ hidden = false }) => !hidden).map(({ path }) => path.split(" ")[0] ?? "")),
  ];
}
