import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";

export interface TestRedis {
  readonly url: string;
  stop(): Promise<void>;
}

const START_ATTEMPTS = 5;

/**
 * A Redis for tests: at DEPUTE_REDIS_URL or, if the variable is not set, a `redis-server` from the PATH, on a free
 * port.
 *
 * If neither exists, the function warns that tests are skipped, and returns undefined.
 *
 * @throws Error if neither exists and CI=true
 */
export async function redisForTests(): Promise<TestRedis | undefined> {
  const url = process.env.DEPUTE_REDIS_URL;
  if (url) return { url, stop: async () => {} };
  if (spawnSync("redis-server", ["--version"]).status === 0) return startRedis();
  const lack = "There is no redis-server on the PATH and no DEPUTE_REDIS_URL";
  if (process.env.CI === "true")
    throw new Error(`${lack}: with CI=true its tests may not be skipped; install it or set the variable.`);
  // biome-ignore lint/suspicious/noConsole: a skipped test has to be seen by the person who runs it
  console.warn(`\n*** ${lack}: THE REDIS TESTS ARE SKIPPED. ***\n`);
  return undefined;
}

/**
 * Starts a server without persistence on a loopback port. The server ends with this process.
 *
 * @param fixedPort the port of a server that has ended; any free port when absent
 */
export async function startRedis(fixedPort?: number): Promise<TestRedis> {
  const folder = await mkdtemp(join(tmpdir(), "depute-redis-"));
  for (let attempt = 1; ; attempt++) {
    const port = fixedPort ?? (await freePort());
    const args = [
      "--port",
      `${port}`,
      "--bind",
      "127.0.0.1",
      "--save",
      "",
      "--appendonly",
      "no",
      "--dir",
      folder,
    ];
    const server = spawn("redis-server", args, { stdio: ["ignore", "pipe", "inherit"] });
    const kill = () => server.kill("SIGKILL");
    process.once("exit", kill);
    const stop = async () => {
      process.off("exit", kill);
      if (server.exitCode === null && server.signalCode === null) {
        kill();
        await once(server, "exit");
      }
      await rm(folder, { recursive: true, force: true });
    };
    if (await isReady(server)) return { url: `redis://127.0.0.1:${port}`, stop };
    await stop();
    // Another process may have taken the port since the search found it free.
    if (attempt === START_ATTEMPTS) throw new Error("redis-server does not start");
  }
}

async function isReady(server: ChildProcess): Promise<boolean> {
  if (server.stdout === null) return false;
  const lines = createInterface(server.stdout);
  try {
    for await (const line of lines) if (line.includes("Ready to accept connections")) return true;
    return false;
  } finally {
    lines.close();
    // Reads and discards the server's log, because a full pipe would block the server.
    server.stdout.resume();
  }
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  server.close();
  await once(server, "close");
  if (address === null || typeof address === "string") throw new Error("no port");
  return address.port;
}
