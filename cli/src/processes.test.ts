import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { type AddressInfo, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { afterEach, describe, expect, test } from "vitest";
import { freePorts } from "./ports.ts";
import { findRedis } from "./redis.ts";

const here = (file: string) => JSON.stringify(new URL(file, import.meta.url).href);
const MAIN = new URL("main.ts", import.meta.url).pathname;

let folder: string | undefined;
const started: ChildProcess[] = [];
afterEach(() => {
  for (const child of started.splice(0)) child.kill("SIGKILL");
  if (folder !== undefined) rmSync(folder, { recursive: true, force: true });
  folder = undefined;
});

/**
 * Runs a program, and returns when the program has started its processes and printed `up`. The program's standard error
 * ends when all processes have ended.
 */
async function run(args: readonly string[], env: Record<string, string> = {}) {
  const child = spawn(process.execPath, args, {
    env: { ...process.env, ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  started.push(child);
  const logged = text(child.stderr);
  const isUp = (async () => {
    for await (const chunk of child.stdout) if (/\bup\b/.test(String(chunk))) return true;
    return false;
  })();
  if (!(await isUp)) throw new Error(`it ended before it was up: ${await logged}`);
  return { child, logged };
}

/** Runs a program that starts and supervises a process with `startChild`. */
function supervisorOf(name: string, args: readonly string[], ready: string) {
  const program = `
    const { startChild } = await import(${here("processes.ts")});
    await startChild(${JSON.stringify(name)}, process.execPath, ${JSON.stringify(args)}, process.env, ${JSON.stringify(ready)});
    console.log("up");
  `;
  return run(["--input-type=module", "--eval", program], { DEPUTE_LOG_LEVEL: "info" });
}

describe("a process whose supervisor is killed", () => {
  test("drains and ends if it is a service", async () => {
    folder = mkdtempSync(join(tmpdir(), "depute-cli-"));
    const args = [MAIN, "serve", "registry", "--registry-port", "0", "--data-dir", folder];
    const { child, logged } = await supervisorOf("registry", args, "registry listens on ");
    child.kill("SIGKILL");
    expect(await logged).toContain("the parent process has ended; stopping");
  }, 30_000);

  test("ends if it is another program", async () => {
    const program =
      'console.log("ready"); process.on("SIGTERM", () => process.exit()); setInterval(() => {}, 1000)';
    const tied = new URL("tied.ts", import.meta.url).pathname;
    const { child, logged } = await supervisorOf(
      "other",
      [tied, process.execPath, "--eval", program],
      "ready",
    );
    child.kill("SIGKILL");
    await logged;
  }, 30_000);
});

/** Runs a command to its end. @returns its exit code and its whole output */
async function ended(args: readonly string[], env: Record<string, string> = {}) {
  const child = spawn(process.execPath, [MAIN, ...args], {
    env: { ...process.env, ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  started.push(child);
  const [code, out, err] = await Promise.all([
    once(child, "exit").then(([code]) => code as unknown),
    text(child.stdout),
    text(child.stderr),
  ]);
  return { code, printed: out + err };
}

test.each([
  ["start", []],
  ["cluster", []],
  ["serve", ["gateway"]],
])(
  "depute %s ends with one line, and starts nothing, if its port is taken",
  async (command, more) => {
    const server = createServer();
    await once(server.listen(0, "127.0.0.1"), "listening");
    const { port } = server.address() as AddressInfo;
    const dataDir = join(tmpdir(), `depute-cli-${crypto.randomUUID()}`);
    const flags = ["--gateway-port", String(port), "--data-dir", dataDir];
    const others = command === "cluster" ? (await freePorts(4)).map(String) : [];
    const names = ["registry", "tasks", "tokens", "verifier"];
    const ports = others.flatMap((each, i) => [`--${names[i]}-port`, each]);
    const { code, printed } = await ended([command, ...more, ...flags, ...ports]);
    server.close();
    expect([code, printed]).toEqual([
      1,
      `depute: cannot listen on 127.0.0.1:${port} (another program listens there); choose another port with --gateway-port or DEPUTE_GATEWAY_PORT\n`,
    ]);
    expect(existsSync(dataDir)).toBe(false);
  },
  30_000,
);

test.each<[string, string[], string]>([
  [
    "a file in place of the data folder",
    ["--data-dir", MAIN],
    `the data folder ${MAIN} cannot be created (EEXIST)`,
  ],
  [
    "no credentials file",
    ["--credentials-file", "/no/file"],
    "cannot use the credentials file /no/file: ENOENT",
  ],
  ["no folder of sockets", ["--socket-dir", "/no/folder"], "cannot listen on /no/folder/gateway.sock (E"],
])(
  "depute start ends with one line for %s",
  async (_what, flags, line) => {
    folder = mkdtempSync(join(tmpdir(), "depute-cli-"));
    const args = ["start", "--gateway-port", "0", "--log-level", "error", "--data-dir", folder, ...flags];
    const { code, printed } = await ended(args);
    expect([code, printed.trimEnd().split("\n")]).toEqual([1, [expect.stringContaining(`depute: ${line}`)]]);
  },
  30_000,
);

test("depute start refuses a service's port when the service shares the process", async () => {
  const { code, printed } = await ended(["start", "--tasks-port", "9001"]);
  expect([code, printed]).toEqual([1, expect.stringMatching(/^depute: --tasks-port: .*--gateway-port.*\n$/)]);
}, 90_000);

test("depute start logs only its stop at Ctrl-C", async () => {
  folder = mkdtempSync(join(tmpdir(), "depute-cli-"));
  const args = [MAIN, "start", "--gateway-port", "0", "--data-dir", folder];
  const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "pipe"] });
  started.push(child);
  const logged = text(child.stderr);
  for await (const chunk of child.stdout) if (String(chunk).includes("Ctrl-C")) break;
  child.kill("SIGINT");
  expect(await once(child, "exit")).toEqual([0, null]);
  const lines = (await logged)
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line));
  const words = lines.map(({ msg }) => msg);
  expect(words.slice(words.indexOf("stopping"))).toEqual(["stopping"]);
  expect(lines.filter(({ level }) => level !== "info")).toEqual([]);
}, 90_000);

test("a process without a supervisor outlives its parent", async () => {
  folder = mkdtempSync(join(tmpdir(), "depute-cli-"));
  const args = ["serve", "registry", "--registry-port", "0", "--data-dir", folder];
  const child = spawn(process.execPath, [MAIN, ...args], { stdio: ["pipe", "pipe", "ignore"] });
  started.push(child);
  for await (const chunk of child.stdout) if (String(chunk).includes("listens on")) break;
  child.stdin.end();
  expect(child.exitCode).toBe(null);
  child.kill("SIGTERM");
  expect(await once(child, "exit")).toEqual([0, null]);
}, 30_000);

test.runIf(findRedis())(
  "all processes of a cluster end with its supervisor, also Redis",
  async () => {
    folder = mkdtempSync(join(tmpdir(), "depute-cli-"));
    const names = ["GATEWAY", "REGISTRY", "TASKS", "TOKENS", "VERIFIER"];
    const env: Record<string, string> = {};
    for (const [i, port] of (await freePorts(names.length)).entries())
      env[`DEPUTE_${names[i]}_PORT`] = `${port}`;
    const more = { DEPUTE_DATA_DIR: folder, DEPUTE_REDIS_URL: "", DEPUTE_LOG_LEVEL: "info" };
    const { child, logged } = await run([MAIN, "cluster"], { ...env, ...more });
    child.kill("SIGKILL");
    const gone = (await logged).match(/the parent process has ended/g);
    expect(gone).toHaveLength(names.length);
  },
  60_000,
);
