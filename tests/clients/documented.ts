import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import type { Language } from "./languages.ts";
import { Program } from "./program.ts";
import type { Scene } from "./scene.ts";

const PAGE = "docs/clients.md";
const DOCUMENTED_URL = "http://127.0.0.1:8080";

/** Timeout of one command, a build or the program, in milliseconds. */
const COMMAND_MS = 120_000;

/** Runs the program of docs/clients.md in a language, and compares its output with the output that the page shows. */
export async function runDocumented(
  { documented, run }: Language,
  scene: Scene,
  scratch: string,
): Promise<void> {
  const [, code = ""] =
    new RegExp(`\\n\`\`\`${documented}\\n([\\s\\S]*?)\`\`\``).exec(readFileSync(PAGE, "utf8")) ?? [];
  assert.ok(
    code.includes(DOCUMENTED_URL),
    `${PAGE} has no program in ${documented} that calls ${DOCUMENTED_URL}`,
  );
  let lines: readonly string[] = [];
  for (const command of run?.(scratch, code.replaceAll(DOCUMENTED_URL, scene.url)) ?? []) {
    const program = new Program(command);
    await program.end(AbortSignal.timeout(COMMAND_MS));
    lines = program.lines;
  }
  assert.deepEqual(lines, ["0 tasks", "TASK_NOT_FOUND"]);
}
