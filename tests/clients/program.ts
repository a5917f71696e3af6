import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import type { Command } from "./languages.ts";

/** A running program, and the lines that it prints. */
export class Program {
  readonly lines: string[] = [];
  readonly #child: ChildProcess;
  readonly #closed: Promise<unknown>;
  #errors = "";
  /**
   * Aborts at the next line, and at the end of the program. Several stories (test scenarios) wait for lines of one
   * worker at the same time.
   */
  #news = new AbortController();

  /** @param onLine called for each line of the output */
  constructor(
    { argv: [program, ...args], cwd, env }: Command,
    more: Readonly<Record<string, string>> = {},
    onLine: (line: string) => void = () => {},
  ) {
    this.#child = spawn(program, args, {
      env: { ...process.env, ...env, ...more },
      stdio: ["ignore", "pipe", "pipe"],
      ...(cwd !== undefined && { cwd }),
    });
    this.#closed = once(this.#child, "close").catch((error: unknown) => {
      this.#errors += String(error);
    });
    void this.#closed.then(() => this.#wake());
    this.#child.stderr?.on("data", (chunk: Buffer) => {
      this.#errors = (this.#errors + chunk.toString()).slice(-4_000);
    });
    if (this.#child.stdout === null) return;
    createInterface(this.#child.stdout).on("line", (line) => {
      this.lines.push(line);
      onLine(line);
      this.#wake();
    });
  }

  /** All output of the program so far, for the message of a failure. */
  get report(): string {
    return [...this.lines, this.#errors].join("\n").trim();
  }

  get hasEnded(): boolean {
    return this.#child.exitCode !== null || this.#child.signalCode !== null;
  }

  /** Waits for a line of the output. @throws Error when the program ends without the line, or the signal aborts */
  async line(wantedLine: RegExp, signal: AbortSignal): Promise<string> {
    for (;;) {
      const foundLine = this.lines.find((line) => wantedLine.test(line));
      if (foundLine !== undefined) return foundLine;
      if (this.hasEnded || signal.aborted) throw new Error(`no line ${wantedLine}:\n${this.report}`);
      const either = AbortSignal.any([signal, this.#news.signal]);
      await new Promise<void>((resolve) => {
        if (either.aborted) resolve();
        else either.addEventListener("abort", () => resolve(), { once: true });
      });
    }
  }

  #wake(): void {
    const earlier = this.#news;
    this.#news = new AbortController();
    earlier.abort();
  }

  /** Waits for the end of the program. @throws Error when it fails, or the signal aborts */
  async end(signal: AbortSignal): Promise<void> {
    const timeout = new Promise<void>((resolve) => {
      if (signal.aborted) resolve();
      else signal.addEventListener("abort", () => resolve(), { once: true });
    });
    await Promise.race([this.#closed, timeout]);
    if (this.#child.exitCode === 0) return;
    const how = signal.aborted ? "does not end" : `ended with ${this.#child.exitCode}`;
    this.kill();
    throw new Error(`the program ${how}:\n${this.report}`);
  }

  /** Ends the program at once, without a chance to clean up. */
  kill(): void {
    this.#child.kill("SIGKILL");
  }

  /** Asks the program to end, and waits for its end. @throws Error when it fails, or the signal aborts */
  async stop(signal: AbortSignal): Promise<void> {
    if (!this.hasEnded) this.#child.kill("SIGTERM");
    await this.end(signal);
  }
}
