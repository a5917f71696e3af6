import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import type { Readable } from "node:stream";
import type { JsonValue } from "@bufbuild/protobuf";
import type { WorkContext } from "@depute/client";

/** Maximum size of a program's result in bytes. */
const MAX_OUTPUT = 16 * 1024 * 1024;

/** When a program fails, the message quotes at most this many of the last characters of its standard error. */
const MAX_ERROR = 1000;

/** Maximum length of a progress line, in characters. */
const MAX_LINE = 2000;

/** With this exit code, a program states that its failure must not be retried: EX_DATAERR of sysexits. */
const NOT_RETRYABLE = 65;

/** The options with which a worker runs a program. */
export interface ProgramRun {
  readonly program: string;
  readonly args: readonly string[];
  readonly input: JsonValue;
  readonly context: Pick<WorkContext, "signal" | "progress" | "task" | "workerToken">;
  /** Milliseconds from SIGTERM to SIGKILL. */
  readonly graceMs: number;
}

/** The outcome of a program: its output or its failure. */
export interface ProgramEnd {
  readonly output?: JsonValue;
  readonly failure?: { readonly reason: string; readonly message: string; readonly retryable: boolean };
}

/**
 * Runs a program on one assignment. The program gets JSON on standard input. It writes the result to standard output,
 * and lines of progress to file descriptor 3. When the signal aborts, the program gets SIGTERM and, after `graceMs`,
 * SIGKILL.
 */
export async function runProgram(run: ProgramRun): Promise<ProgramEnd> {
  const { program, args, input, context, graceMs } = run;
  const child = spawn(program, args, {
    stdio: ["pipe", "pipe", "pipe", "pipe"],
    env: {
      ...process.env,
      DEPUTE_TASK_ID: context.task.id,
      DEPUTE_ATTEMPT: String(context.task.attempt),
      ...(context.workerToken !== "" && { DEPUTE_WORKER_TOKEN: context.workerToken }),
    },
  });
  let killer: NodeJS.Timeout | undefined;
  const stop = () => {
    child.kill("SIGTERM");
    killer = setTimeout(() => child.kill("SIGKILL"), graceMs);
  };
  if (context.signal.aborted) stop();
  else context.signal.addEventListener("abort", stop, { once: true });
  const ended = once(child, "close").then(
    ([code, signal]) => ({ code: code as number | null, signal: signal as string | null }),
    (error: Error) => error,
  );
  // A program may end without reading its input, so errors of the write are ignored.
  child.stdin.on("error", () => {});
  child.stdin.end(JSON.stringify(input));
  const progress = reportProgress(child.stdio[3] as Readable, context);
  const [output, errors, end] = await Promise.all([
    collect(child.stdout, () => child.kill("SIGKILL")),
    tail(child.stderr),
    ended,
    progress,
  ]);
  context.signal.removeEventListener("abort", stop);
  clearTimeout(killer);
  if (end instanceof Error) {
    return failed("PROGRAM_NOT_STARTED", `${program} does not start: ${end.message}`, false);
  }
  if (output === undefined)
    return failed("OUTPUT_TOO_LARGE", `the result exceeds ${MAX_OUTPUT} bytes`, false);
  if (end.code !== 0) {
    const how = end.signal === null ? `exit code ${end.code}` : `signal ${end.signal}`;
    return failed("PROGRAM_FAILED", `${how}: ${errors}`.trim(), end.code !== NOT_RETRYABLE);
  }
  try {
    return { output: JSON.parse(output) as JsonValue };
  } catch {
    return failed("OUTPUT_NOT_JSON", "the program's standard output is not JSON", false);
  }
}

function failed(reason: string, message: string, retryable: boolean): ProgramEnd {
  return { failure: { reason, message, retryable } };
}

/** Returns the whole text of a stream; undefined if the stream has more than MAX_OUTPUT bytes. */
async function collect(stream: Readable, onTooLong: () => void): Promise<string | undefined> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of stream) {
    size += (chunk as Buffer).length;
    if (size <= MAX_OUTPUT) chunks.push(chunk as Buffer);
    else onTooLong();
  }
  return size > MAX_OUTPUT ? undefined : Buffer.concat(chunks).toString("utf8");
}

async function tail(stream: Readable): Promise<string> {
  let text = "";
  for await (const chunk of stream.setEncoding("utf8")) text = (text + chunk).slice(-MAX_ERROR);
  return text.trim();
}

/**
 * Reports the lines of progress that the program writes. Ignores lines that do not state progress. A failed
 * report does not fail the task.
 */
async function reportProgress(stream: Readable, { progress }: Pick<WorkContext, "progress">): Promise<void> {
  stream.on("error", () => {});
  for await (const line of createInterface({ input: stream })) {
    const report = progressOf(line.slice(0, MAX_LINE));
    if (report !== undefined) await progress(...report).catch(() => {});
  }
}

/**
 * Reads a line of progress: `DONE/TOTAL MESSAGE`, or JSON with `processed`, `total` and `message`. Returns undefined
 * for any other line.
 */
export function progressOf(line: string): [processed: number, total: number, message: string] | undefined {
  const [, doneCount, all, text = ""] = /^\s*(\d{1,9})\s*\/\s*(\d{1,9})(?:\s+(.*))?$/.exec(line) ?? [];
  if (doneCount !== undefined) return [Number(doneCount), Number(all), text];
  try {
    const { processed, total, message = "" } = JSON.parse(line) as Record<string, unknown>;
    if (isCount(processed) && isCount(total)) return [processed, total, String(message)];
  } catch {
    // The line is neither a progress line nor JSON, so the function returns undefined.
  }
  return undefined;
}

function isCount(value: unknown): value is number {
  return Number.isInteger(value) && (value as number) >= 0 && (value as number) <= 0x7fffffff;
}
