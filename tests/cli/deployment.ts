import { spawn } from "node:child_process";
import { once } from "node:events";
import { text } from "node:stream/consumers";
import { freePorts } from "depute/ports";
import { type Ended, MAIN, type User, userOf } from "./depute.ts";

/** The environment variables that configure a platform. */
export type Backend = Readonly<Record<string, string>>;

/** Returns the environment variables of a test's platform, which logs nothing. */
export function backendOf(more: Backend = {}): Backend {
  return { DEPUTE_LOG_LEVEL: "silent", ...more };
}

const READY_MS = 120_000;

/** A platform in a process of its own, and its operator at the command line. */
export class Deployment {
  readonly #user: User;
  readonly #env: Backend;
  readonly #url: string;
  readonly #ended: Promise<unknown>;
  readonly #kill: (signal: NodeJS.Signals) => void;

  private constructor(user: User, env: Backend, url: string, child: ReturnType<typeof spawn>) {
    this.#user = user;
    this.#env = env;
    this.#url = url;
    this.#ended = once(child, "exit");
    this.#kill = (signal) => void child.kill(signal);
  }

  static async start(dataDir: string, backend: Backend): Promise<Deployment> {
    const [port = 0] = await freePorts(1);
    const url = `http://127.0.0.1:${port}`;
    const env = { ...backend, DEPUTE_GATEWAY_PORT: String(port), DEPUTE_DATA_DIR: dataDir };
    const child = spawn(process.execPath, [MAIN, "start"], {
      env: { ...process.env, ...env },
      stdio: ["ignore", "ignore", "inherit"],
    });
    const deployment = new Deployment(userOf(url, env), env, url, child);
    const deadline = Date.now() + READY_MS;
    while ((await fetch(`${url}/readyz`).catch(() => undefined))?.status !== 200) {
      if (child.exitCode !== null || Date.now() > deadline) throw new Error("the platform did not start");
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    return deployment;
  }

  /** The platform's address. */
  get url(): string {
    return this.#url;
  }

  /** The folder in which commands run. */
  get folder(): string {
    return this.#user.folder;
  }

  /** Runs a command of the operator with the platform's variables. */
  run(words: readonly string[], more: Backend = {}): Promise<Ended> {
    return shell(words, { ...this.#env, DEPUTE_URL: this.#url, ...more }, undefined, this.#user);
  }

  /** Registers an agent. @returns the status */
  async register(id: string): Promise<number> {
    const answer = await fetch(`${this.#url}/depute.registry.v1.AgentService/RegisterAgent`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ requestId: id, agent: { id, description: "for a test" } }),
    });
    await answer.arrayBuffer();
    return answer.status;
  }

  /** Stops the platform as an operator does. Idempotent. */
  async stop(): Promise<void> {
    this.#kill("SIGTERM");
    await this.#ended;
  }
}

/** Runs a command of Depute, or a script of the shell. */
export async function shell(
  words: readonly string[],
  env: Backend = {},
  script?: string,
  user?: User,
): Promise<Ended> {
  const [program, args] =
    script === undefined
      ? [process.execPath, [MAIN, ...words]]
      : ["bash", ["-euo", "pipefail", "-c", script]];
  const child = spawn(program, args, {
    env: { ...process.env, ...user?.env, ...env },
    ...(user !== undefined && { cwd: user.folder }),
    stdio: ["ignore", "pipe", "pipe"],
    timeout: READY_MS,
    killSignal: "SIGKILL",
  });
  const [out, err, [code]] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    once(child, "close"),
  ]);
  return { code, out, err };
}
