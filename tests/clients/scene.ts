import { createHash } from "node:crypto";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startPlatformProcess } from "@depute/example-sentiment/processes";
import { freePorts } from "depute/ports";
import { type Detour, detourTo } from "../sdk/detour.ts";
import type { Command, Language } from "./languages.ts";
import { Program } from "./program.ts";

const SECRET = "secret-of-the-issuer";

/**
 * A platform that requires credentials, behind a proxy. The stories (test scenarios) cut the proxy's
 * connections.
 */
export class Scene {
  readonly folder: string;
  readonly #proxy: Detour;
  readonly #stopPlatform: () => Promise<void>;
  readonly #programs = new Set<Program>();

  private constructor(folder: string, proxy: Detour, stopPlatform: () => Promise<void>) {
    this.folder = folder;
    this.#proxy = proxy;
    this.#stopPlatform = stopPlatform;
  }

  static async open(): Promise<Scene> {
    const folder = mkdtempSync(join(tmpdir(), "depute-clients-"));
    const credentials = join(folder, "credentials.json");
    const sha256 = createHash("sha256").update(SECRET).digest("hex");
    writeFileSync(credentials, JSON.stringify([{ principal: "issuer", sha256 }]), { mode: 0o600 });
    const [port] = await freePorts(1);
    const proxy = await detourTo(`http://127.0.0.1:${port}`);
    const platform = await startPlatformProcess(["start"], {
      DEPUTE_DATA_DIR: join(folder, "data"),
      DEPUTE_GATEWAY_PORT: String(port),
      DEPUTE_PUBLIC_URL: proxy.url,
      DEPUTE_AUTH: "required",
      DEPUTE_CREDENTIALS_FILE: credentials,
      DEPUTE_MINTERS: "issuer",
      DEPUTE_LOG_LEVEL: "error",
    });
    return new Scene(folder, proxy, () => platform.stop());
  }

  /** The folder in which a language builds its programs. */
  scratch({ name }: Language): string {
    const folder = join(this.folder, name);
    mkdirSync(folder, { recursive: true });
    return folder;
  }

  /** The public URL of the platform. */
  get url(): string {
    return this.#proxy.url;
  }

  /** Cuts all connections. */
  cut(): void {
    this.#proxy.cut();
  }

  /** Starts a worker of an agent. All workers of an agent have one key. */
  async worker(command: Command, agent: string, signal: AbortSignal): Promise<Program> {
    const worker = this.#start(command, {
      DEPUTE_KEY: join(this.folder, `${agent}.key`),
      DEPUTE_AGENT: agent,
    });
    await worker.line(/^ready$/, signal);
    return worker;
  }

  delegator(command: Command, agent: string, mode: string, onLine?: (line: string) => void): Program {
    const { argv, ...rest } = command;
    const key = join(this.folder, `${crypto.randomUUID()}.key`);
    const env = { DEPUTE_KEY: key, DEPUTE_AGENT: agent, DEPUTE_SECRET: SECRET };
    return this.#start({ ...rest, argv: [...argv, mode] }, env, onLine);
  }

  #start(command: Command, env: Record<string, string>, onLine?: (line: string) => void): Program {
    const settings = { DEPUTE_URL: this.#proxy.url, DEPUTE_PAUSE_MS: "100", ...env };
    const program = new Program(command, settings, onLine);
    this.#programs.add(program);
    return program;
  }

  async close(): Promise<void> {
    for (const program of this.#programs) program.kill();
    await this.#stopPlatform();
    await this.#proxy.close();
    rmSync(this.folder, { recursive: true, force: true });
  }
}
