import { describe, expect, test } from "vitest";
import { progressOf } from "./client/program.ts";
import { barLine } from "./client/progress-bar.ts";
import { requestFrom } from "./client/request.ts";
import { candidatesFor } from "./completion.ts";
import { CommandError } from "./exit-codes.ts";
import { commandHelp, overview } from "./help.ts";
import { nearest, parseInvocation } from "./parse.ts";
import { widthOf } from "./print/width.ts";
import type { Command } from "./table/command.ts";
import { COMMANDS, findCommand, firstWords } from "./table/commands.ts";

const commandOf = (path: string) => findCommand(path.split(" "))?.command as Command;
const parsed = (path: string, ...words: string[]) => parseInvocation(commandOf(path), words);

describe("a command line", () => {
  test("becomes a request of the contract", () => {
    const words = ["--agent", "echo", "--input", '{"a":1}', "--deadline", "5m", "--priority", "3"];
    const invocation = parsed("delegate", ...words);
    expect(invocation && requestFrom(invocation)).toEqual({
      draft: { agentId: "echo", input: { a: 1 }, limits: { total: "300.000s" }, priority: "3" },
    });
  });

  test("repeats a flag, and accepts names of constants", () => {
    const invocation = parsed("tasks list", "--status", "running", "--status", "in-review");
    expect(invocation && requestFrom(invocation)).toEqual({
      statuses: ["TASK_STATUS_RUNNING", "TASK_STATUS_IN_REVIEW"],
    });
  });

  test.each(["-", "--"])("accepts a key that begins with %s as a value and as an argument", (start) => {
    const key = start.padEnd(43, "x");
    const words = ["--delegatee", key, "--capability", "web:search:**", "--budget", "1000"];
    expect(parsed("tokens create", ...words)?.values).toMatchObject({ delegatee: key });
    expect(parsed("tasks describe", key)?.values).toMatchObject({ TASK: key });
    expect(() => parsed("tasks describe", key.slice(0, 42))).toThrow(CommandError);
  });

  test("keeps the words after -- for a program", () => {
    expect(parsed("worker", "--agent", "a", "--", "cat", "--help")?.rest).toEqual(["cat", "--help"]);
  });

  test.each<[string, string[], string]>([
    ["tasks describe", [], "TASK is missing; see depute tasks describe --help"],
    ["tasks describe", ["a", "b"], '"b" is not an argument of this command'],
    ["tasks list", ["--status", "odd"], '--status is "odd", but must be one of pending'],
    ["tasks list", ["--no-such"], "unknown option '--no-such'"],
    ["tokens create", ["--delegatee", "x"], "--capability is missing"],
  ])("%s %j is refused with the remedy", (path, words, message) => {
    expect(() => parsed(path, ...words)).toThrow(CommandError);
    expect(() => parsed(path, ...words)).toThrow(message);
  });

  test.each([
    ["--deadline", "5", "a duration such as"],
    ["--priority", "high", "a whole number"],
    ["--input", "{", "is not JSON"],
  ])("%s %s is refused with the accepted values", (flag, text, message) => {
    const invocation = parsed("delegate", "--agent", "a", flag, text);
    expect(() => invocation && requestFrom(invocation)).toThrow(message);
  });

  test("a wrong first word gets the nearest command", () => {
    expect(nearest("taks", firstWords())).toBe("tasks");
    expect(nearest("unrelated", firstWords())).toBeUndefined();
    expect(nearest("x".repeat(10_000), firstWords())).toBeUndefined();
  });
});

test("help names every command and every flag", () => {
  for (const command of COMMANDS) {
    const words = command.path.split(" ");
    if (!command.hidden) for (const word of words) expect(overview()).toContain(word);
    for (const name of Object.keys(command.flags ?? {})) expect(commandHelp(command)).toContain(`--${name}`);
  }
});

test.each<[string[], string[], string[]]>([
  [["ta"], [], ["tasks"]],
  [["tasks", "t"], [], ["tree"]],
  [["tasks", "list", "--st"], [], ["--status"]],
  [["tasks", "list", "--status", "in"], [], ["input-required", "in-review"]],
  [["reviews", "decide", "R", "app"], [], ["approved"]],
  [["completion", ""], [], ["bash", "zsh", "fish"]],
  [
    ["context", "use", ""],
    ["local", "prod"],
    ["local", "prod"],
  ],
  [["agents", "list", "--context", "p"], ["local", "prod"], ["prod"]],
  [["worker", "--agent", "a", "--", ""], [], []],
  [["tasks", "describe", ""], [], []],
])("the words %j with the contexts %j are completed to %j", (words, contexts, candidates) => {
  expect(candidatesFor(words, contexts).map(([word]) => word)).toEqual(candidates);
});

test.each([
  ["1/2 half", [1, 2, "half"]],
  [" 3 / 4", [3, 4, ""]],
  ['{"processed":5,"total":6,"message":"m"}', [5, 6, "m"]],
  ['{"processed":-1,"total":6}', undefined],
  ["anything", undefined],
])("the line %j of a program is the progress %j", (line, progress) => {
  expect(progressOf(line)).toEqual(progress);
});

test.each([10, 20, 40, 80, 200])("a bar of progress fits %i columns, and escapes its message", (columns) => {
  const progress = { status: "running", processed: 1, total: 3, message: "\u001b[2J\n" };
  const line = barLine(progress, columns);
  expect(widthOf(line)).toBeLessThan(columns);
  for (const obeyed of ["\u001b", "\n"]) expect(line).not.toContain(obeyed);
});
