import { execFile } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { connect } from "node:http2";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";

/** One request that is sent repeatedly: a GET if its body is empty, else a POST. */
export interface Load {
  readonly url: string;
  readonly headers: readonly string[];
  readonly body: Uint8Array;
  readonly connections: number;
  readonly inFlightOfEach: number;
  readonly seconds: number;
  /** The number of requests; if set, it replaces `seconds`. */
  readonly calls?: number;
  /** The version of HTTP; 2 unless stated. */
  readonly http?: "1.1" | "2";
}

/**
 * Runs h2load, and returns the number of requests that the server answered. h2load leaves nearly all CPU time to the
 * server. It checks only the HTTP status, so the contents of responses need a separate check.
 */
export async function h2load(load: Load): Promise<number> {
  const folder = mkdtempSync(join(tmpdir(), "depute-bench-"));
  try {
    const file = join(folder, "body");
    const amount = load.calls === undefined ? ["-D", String(load.seconds)] : ["-n", String(load.calls)];
    const args = [...amount, "-c", String(load.connections)];
    args.push("-m", String(load.inFlightOfEach));
    if (load.http === "1.1") args.push("--h1");
    if (load.body.length > 0) {
      writeFileSync(file, load.body);
      args.push("-d", file);
    }
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

/** Makes a gRPC frame: the flag for no compression, the length, and the message. */
export function envelope(message: Uint8Array): Uint8Array {
  const frame = Buffer.alloc(5 + message.length);
  frame.writeUInt32BE(message.length, 1);
  frame.set(message, 5);
  return frame;
}

/**
 * Makes one call over HTTP/2 by node:http2.
 *
 * @throws Error if the response has an error's HTTP status, or a status of gRPC other than 0
 */
export async function assertAnswered({ url, headers, body }: Pick<Load, "url" | "headers" | "body">) {
  const { origin, pathname } = new URL(url);
  const session = connect(origin);
  try {
    const pairs = headers.map((header) => header.split(/: (.*)/s).slice(0, 2) as [string, string]);
    const request = session.request({ ":path": pathname, ":method": "POST", ...Object.fromEntries(pairs) });
    let status: unknown;
    let grpcStatus: unknown;
    request.on("response", (response) => {
      status = response[":status"];
      grpcStatus = response["grpc-status"];
    });
    request.on("trailers", (trailers) => {
      grpcStatus = trailers["grpc-status"];
    });
    request.end(body);
    for await (const _ of request) void _;
    if (status !== 200 || (grpcStatus !== undefined && grpcStatus !== "0"))
      throw new Error(`${url}: HTTP status ${status}, gRPC status ${grpcStatus}`);
  } finally {
    session.close();
  }
}
