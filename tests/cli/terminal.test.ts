import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { introduce, startPlatform, type TestPlatform } from "../gateway/platform.ts";
import { MAIN, type User, userOf } from "./depute.ts";

// The limit is high, because each test runs several commands and each command is a process.
vi.setConfig({ testTimeout: 120_000 });

const run = promisify(execFile);
const TERMINAL = join(process.cwd(), "tests/cli/terminal.py");
const ESCAPE = String.fromCharCode(27);

let platform: TestPlatform;
let user: User;
beforeAll(async () => {
  platform = await startPlatform();
  user = userOf(platform.url, { TERM: "xterm" });
  await introduce(platform, "steps");
  platform.work("steps", async (_, { progress }) => {
    for (const step of [1, 2, 3, 4])
      await progress(step, 4, "a message that is longer than a narrow terminal");
    return { output: "all steps" };
  });
  await introduce(platform, "idle");
});
afterAll(async () => {
  user.remove();
  await platform.stop();
});

/** Runs a command on a terminal. @returns all that the terminal receives */
async function onTerminal(columns: number, words: readonly string[], more: NodeJS.ProcessEnv = {}) {
  const env = { ...user.env, ...more };
  const { stdout } = await run("python3", [TERMINAL, String(columns), process.execPath, MAIN, ...words], {
    env,
  });
  return stdout;
}

/** The lines on a terminal, without colors. */
function linesOf(received: string): string[] {
  const color = new RegExp(`${ESCAPE}\\[[0-9;]*m`, "g");
  return received.replace(color, "").replaceAll("\r\n", "\n").split("\n");
}

test("a bar of progress ends at its result, and leaves no line behind", async () => {
  const received = await onTerminal(60, ["delegate", "--agent", "steps", "--watch"]);
  expect(received).toContain("running 100% 4/4");
  const parts = received.split(`\r${ESCAPE}[K`);
  const output = parts.pop() ?? "";
  for (const line of parts) expect(line.length).toBeLessThan(60);
  expect(output.trim()).toBe('"all steps"');
});

test.each([30, 60, 100])("a table fits a terminal of %i columns", async (columns) => {
  await platform.clients.tasks.createTask({
    requestId: crypto.randomUUID(),
    draft: {
      agentId: "idle",
      description: "漢字 and a description that is longer than the terminal is wide",
    },
  });
  const received = await onTerminal(columns, ["tasks", "list", "--agent", "idle"]);
  for (const line of linesOf(received)) expect(line.length).toBeLessThanOrEqual(columns);
  expect(received).toContain("pending");
});

test.each<[string, NodeJS.ProcessEnv, boolean]>([
  ["has colors", {}, true],
  ["with NO_COLOR has none", { NO_COLOR: "1" }, false],
  ["that is dumb has none", { TERM: "dumb" }, false],
])("a terminal %s", async (_, env, hasColors) => {
  const received = await onTerminal(120, ["agents", "list"], env);
  expect(received.includes(`${ESCAPE}[32m`)).toBe(hasColors);
});
