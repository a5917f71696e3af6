import { execFile } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";

/** One request over HTTP/2 that is sent repeatedly. */
export interface Load {
  readonly url: string;
  readonly headers: readonly string[];
  readonly body: Uint8Array;
  readonly connections: number;
  readonly inFlightOfEach: number;
  readonly seconds: number;
}

/**
 * Returns the requests per second that h2load measures. h2load leaves nearly all CPU time to the server. It checks only
 * the HTTP status, so the contents of responses need a separate check.
 */
export async function h2load(load: Load): Promise<number> {
  const folder = mkdtempSync(join(tmpdir(), "depute-bench-"));
  try {
    const file = join(folder, "body");
    writeFileSync(file, load.body);
    const args = ["-D", String(load.seconds), "-c", String(load.connections)];
    args.push("-m", String(load.inFlightOfEach), "-d", file);
    for (const header of load.headers) args.push("-H", header);
    const { stdout } = await run([...args, load.url]);
    const [, done, succeeded] = /(\d+) done, (\d+) succeeded/.exec(stdout) ?? [];
    if (succeeded === undefined || done !== succeeded) throw new Error(`calls failed:\n${stdout}`);
    return Number(succeeded);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

async function run(args: string[]): Promise<{ stdout: string }> {
  try {
    return await promisify(execFile)("h2load", args);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
    throw new Error("h2load is not on the PATH (Debian: apt-get install nghttp2-client)");
  }
}
