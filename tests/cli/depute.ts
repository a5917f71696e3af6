import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";

export const MAIN = join(process.cwd(), "cli/src/main.ts");

/** The outcome of a command: its exit code and its output. */
export interface Ended {
  readonly code: number | null;
  readonly out: string;
  readonly err: string;
}

/** A user of the command line: a folder of configuration, and a platform. */
export interface User {
  readonly folder: string;
  readonly env: NodeJS.ProcessEnv;
  /** Runs a command to its end. The command has no terminal. */
  run(words: readonly string[], input?: string): Promise<Ended>;
  /** Starts a command that runs until it is stopped. */
  start(words: readonly string[]): ReturnType<typeof spawn>;
  remove(): void;
}

/** Makes a user of the command line whose selected platform is at an address. */
export function userOf(url: string, more: Record<string, string> = {}): User {
  const folder = mkdtempSync(join(tmpdir(), "depute-user-"));
  const env = { ...process.env, DEPUTE_URL: url, DEPUTE_CONFIG: join(folder, "config.json"), ...more };
  const start = (words: readonly string[]) =>
    spawn(process.execPath, [MAIN, ...words], { env, cwd: folder, stdio: ["pipe", "pipe", "pipe"] });
  return {
    folder,
    env,
    start,
    async run(words, input = "") {
      const child = start(words);
      child.stdin.end(input);
      const [out, err, [code]] = await Promise.all([
        text(child.stdout),
        text(child.stderr),
        once(child, "close"),
      ]);
      return { code, out, err };
    },
    remove: () => rmSync(folder, { recursive: true, force: true }),
  };
}
