import assert from "node:assert/strict";
import type { Command } from "./languages.ts";
import type { Program } from "./program.ts";
import type { Scene } from "./scene.ts";

/** Timeout of a story, in milliseconds. */
export const STORY_MS = 180_000;

const COMPLETED = [
  "ended completed",
  'result {"count":500,"negative":250,"positive":125}',
  "checked passed",
  "attestation valid",
  /^revoked \d+$/,
  "refused TOKEN_DENIED",
];

/** The worker of one agent, and a delegator. */
export interface Pair {
  readonly agent: string;
  readonly worker: Program;
  readonly delegator: Command;
}

/** The delegator receives each event and the result, although the test cuts all connections twice. */
export async function drops(scene: Scene, { agent, worker, delegator }: Pair): Promise<void> {
  const signal = AbortSignal.timeout(STORY_MS);
  // A worker may merge progress reports, so the delegator gets only some of the counts.
  const cutAt = [150, 350];
  const program = scene.delegator(delegator, agent, "complete", (line) => {
    if (processedOf(line) < (cutAt[0] ?? Number.POSITIVE_INFINITY)) return;
    cutAt.shift();
    scene.cut();
  });
  await program.end(signal);
  assert.deepEqual(cutAt, [], `the connections were not cut:\n${program.report}`);
  checkEnd(program, COMPLETED);
  await worker.line(new RegExp(`^completed ${taskOf(program)}$`), signal);
}

/** The delegator cancels the task while the worker works on it, and the worker stops. */
export async function cancellation(scene: Scene, { agent, worker, delegator }: Pair): Promise<void> {
  const signal = AbortSignal.timeout(STORY_MS);
  const program = scene.delegator(delegator, agent, "cancel");
  await program.end(signal);
  checkEnd(program, ["ended cancelled"], 250);
  await worker.line(new RegExp(`^stopped ${taskOf(program)}$`), signal);
}

/**
 * The delegator revokes its token while the worker works on the task. The worker stops, and the platform refuses the
 * token.
 */
export async function revocation(scene: Scene, { agent, worker, delegator }: Pair): Promise<void> {
  const signal = AbortSignal.timeout(STORY_MS);
  const program = scene.delegator(delegator, agent, "revoke");
  await program.end(signal);
  checkEnd(program, ["ended revoked", "refused TOKEN_DENIED"], 250);
  await worker.line(new RegExp(`^stopped ${taskOf(program)}$`), signal);
}

/**
 * A worker is killed while it works, and the second worker, often of another language, continues from the
 * checkpoint.
 */
export async function takeover(
  scene: Scene,
  agent: string,
  first: Command,
  second: Command,
  delegator: Command,
): Promise<void> {
  const signal = AbortSignal.timeout(STORY_MS);
  const dying = await scene.worker(first, agent, signal);
  const program = scene.delegator(delegator, agent, "complete", (line) => {
    if (processedOf(line) >= 200) dying.kill();
  });
  await program.line(/ progress [2-4]\d\d\/500$/, signal);
  const worker = await scene.worker(second, agent, signal);
  await program.end(signal);
  checkEnd(program, COMPLETED);
  assert.ok(
    program.lines.some((line) => / requeued$/.test(line)),
    `the task was not requeued:\n${program.report}`,
  );
  await worker.line(new RegExp(`^completed ${taskOf(program)}$`), signal);
  await worker.stop(signal);
}

/**
 * Checks a delegator's output: the events have no gaps, the progress never repeats a count, and the lines after the
 * events are the expected ones. By default the worker must have processed all 500 texts. With a lower `minCount` it must
 * have stopped early: after at least `minCount` texts, but before the last one.
 */
function checkEnd(program: Program, expected: readonly (string | RegExp)[], minCount = 500): void {
  const { lines, report } = program;
  const sequences = lines.flatMap((line) => /^event (\d+) /.exec(line)?.[1] ?? []).map(Number);
  assert.deepEqual(
    sequences,
    sequences.map((_, index) => index + 1),
    `the events have gaps:\n${report}`,
  );
  const processed = lines.map(processedOf).filter((count) => count > 0);
  assert.deepEqual(
    processed,
    [...new Set(processed)].sort((a, b) => a - b),
    `texts were done twice:\n${report}`,
  );
  if (minCount === 500) assert.equal(processed.at(-1), 500, report);
  else assert.ok((processed.at(-1) ?? 0) >= minCount && (processed.at(-1) ?? 0) < 500, report);
  const end = lines.filter((line) => !/^(event|task) /.test(line));
  assert.equal(end.length, expected.length, report);
  for (const [index, line] of expected.entries()) {
    if (typeof line === "string") assert.equal(end[index], line, report);
    else assert.match(end[index] ?? "", line, report);
  }
}

function processedOf(line: string): number {
  return Number(/^event \d+ progress (\d+)\//.exec(line)?.[1] ?? 0);
}

function taskOf({ lines }: Program): string {
  return lines.flatMap((line) => /^task (\S+)$/.exec(line)?.[1] ?? [])[0] ?? "(no task)";
}
