import { type ChildProcess, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { portsApart } from "./running-cluster.ts";

const MAIN = fileURLToPath(new URL("../../../cli/src/main.ts", import.meta.url));
const MODULES = ["registry", "tokens", "verifier", "tasks", "gateway"] as const;
type Module = (typeof MODULES)[number];

/** Milliseconds in which a process drains before it is killed. A kill fails the test by its exit code. */
const GRACE_MS = 30_000;

/** Number of attempts to start a process. */
const START_TRIES = 12;

export interface ScalableOptions {
  /** The greatest number of replicas. The addresses of all of them are in the settings from the start. */
  readonly most: number;
  readonly folder: string;
  readonly env: Readonly<Record<string, string>>;
}

/** A platform whose replicas come and go, as an orchestrator runs it. A replica is one process of each service. */
export class ScalablePlatform {
  /** The address that all gateways share. */
  readonly url: string;
  readonly #ports: Readonly<Record<Module, number>>;
  readonly #env: NodeJS.ProcessEnv;
  readonly #folder: string;
  readonly #replicas = new Map<number, ChildProcess[]>();

  private constructor({ most, folder, env }: ScalableOptions, ports: Readonly<Record<Module, number>>) {
    this.#ports = ports;
    this.#folder = folder;
    this.url = `http://127.0.0.1:${ports.gateway}`;
    const masterKeyFile = join(folder, "master.key");
    writeFileSync(masterKeyFile, randomBytes(32).toString("base64url"), { mode: 0o600 });
    const urls = MODULES.filter((module) => module !== "gateway").map((module) => [
      `DEPUTE_${module.toUpperCase()}_URL`,
      Array.from({ length: most }, (_, n) => this.urlOf(module, n + 1)).join(","),
    ]);
    this.#env = {
      ...process.env,
      DEPUTE_LOG_LEVEL: "fatal",
      DEPUTE_REPLICATED: "true",
      DEPUTE_MASTER_KEY_FILE: masterKeyFile,
      DEPUTE_INTERNAL_SECRET: randomBytes(32).toString("base64url"),
      DEPUTE_PUBLIC_URL: this.url,
      DEPUTE_GATEWAY_SHARED_PORT: `${ports.gateway}`,
      ...Object.fromEntries(urls),
      ...env,
    };
  }

  static async open(options: ScalableOptions): Promise<ScalablePlatform> {
    const ports = await portsApart(MODULES.length);
    const byModule = Object.fromEntries(MODULES.map((module, i) => [module, ports[i] ?? 0]));
    return new ScalablePlatform(options, byModule as Record<Module, number>);
  }

  /** @param replica the number of the replica, from 1 */
  urlOf(module: Module, replica: number): string {
    return `http://127.0.0.1:${this.#portOf(module, replica)}`;
  }

  /** Starts the processes of a replica, one after the other. Resolves when all of them listen. */
  async start(replica: number): Promise<void> {
    const children: ChildProcess[] = [];
    this.#replicas.set(replica, children);
    for (const module of MODULES) children.push(await this.#startOne(module, replica));
  }

  /** Starts a process again if it ends at its start. On a busy machine, its database may answer too late. */
  async #startOne(module: Module, replica: number): Promise<ChildProcess> {
    const dataDir = join(this.#folder, `${module}-${replica}`);
    mkdirSync(dataDir, { recursive: true, mode: 0o700 });
    const env = {
      ...this.#env,
      DEPUTE_DATA_DIR: dataDir,
      [`DEPUTE_${module.toUpperCase()}_PORT`]: `${this.#portOf(module, replica)}`,
      ...(module !== "gateway" && { DEPUTE_GATEWAY_SHARED_PORT: "" }),
    };
    const args = [MAIN, "serve", module];
    for (let remainingTries = START_TRIES - 1; ; remainingTries--) {
      try {
        return await started(spawn(process.execPath, args, { env, stdio: ["ignore", "pipe", "inherit"] }));
      } catch (error) {
        if (remainingTries === 0) throw error;
      }
    }
  }

  /** Asks all processes of a replica to end, at the same time. Returns their exit codes when they have ended. */
  async end(replica: number): Promise<readonly string[]> {
    const children = this.#replicas.get(replica) ?? [];
    this.#replicas.delete(replica);
    return Promise.all(children.map(ended));
  }

  async close(): Promise<void> {
    await Promise.all([...this.#replicas.keys()].map((replica) => this.end(replica)));
  }

  #portOf(module: Module, replica: number): number {
    // All gateways share the module's first port. So a gateway's own ports begin 10 later than the ports of another
    // module would.
    return this.#ports[module] + 10 * (module === "gateway" ? replica : replica - 1);
  }
}

/** Waits until a process listens. @throws Error if it ends before */
async function started(child: ChildProcess): Promise<ChildProcess> {
  const kill = () => child.kill("SIGKILL");
  process.once("exit", kill);
  child.once("exit", () => process.off("exit", kill));
  for await (const line of createInterface({ input: child.stdout as NodeJS.ReadableStream })) {
    if (!line.includes(" listens on ")) continue;
    child.stdout?.resume();
    return child;
  }
  throw new Error("a process ended before it listened");
}

/** Asks a process to end. Returns its exit code, or the signal that ended it. */
async function ended(child: ChildProcess): Promise<string> {
  if (child.exitCode === null && child.signalCode === null) {
    const exited = once(child, "exit");
    child.kill("SIGTERM");
    const timer = setTimeout(() => child.kill("SIGKILL"), GRACE_MS);
    await exited;
    clearTimeout(timer);
  }
  return String(child.signalCode ?? child.exitCode);
}
