import { type ChildProcess, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { freeSchema } from "@depute/store/testing";

const MAIN = fileURLToPath(new URL("../../cli/src/main.ts", import.meta.url));

export type Json = Record<string, unknown>;

/** One process of a service, called as JSON over HTTP. */
export class Replica {
  readonly url: string;
  readonly process: ChildProcess;

  constructor(process: ChildProcess, url: string) {
    this.process = process;
    this.url = url;
  }

  /** @param method e.g. `depute.verifier.v1.LogService/GetLogHead` */
  async call(method: string, request: Json, headers: Record<string, string> = {}): Promise<Json> {
    const answer = await fetch(`${this.url}/${method}`, {
      method: "POST",
      headers: { "content-type": "application/json", ...headers },
      body: JSON.stringify(request),
    });
    return (await answer.json()) as Json;
  }

  /** Returns the first messages of a stream. */
  async stream(method: string, request: Json, count: number): Promise<Json[]> {
    const ending = new AbortController();
    const body = Buffer.from(JSON.stringify(request));
    const envelope = Buffer.alloc(5);
    envelope.writeUInt32BE(body.length, 1);
    const answer = await fetch(`${this.url}/${method}`, {
      method: "POST",
      headers: { "content-type": "application/connect+json" },
      body: Buffer.concat([envelope, body]),
      signal: ending.signal,
    });
    const messages: Json[] = [];
    let buffered = Buffer.alloc(0);
    for await (const chunk of answer.body ?? []) {
      buffered = Buffer.concat([buffered, chunk]);
      while (buffered.length >= 5 && buffered.length >= 5 + buffered.readUInt32BE(1)) {
        const end = 5 + buffered.readUInt32BE(1);
        messages.push(JSON.parse(buffered.subarray(5, end).toString()));
        buffered = buffered.subarray(end);
      }
      if (messages.length >= count) break;
    }
    ending.abort();
    return messages.slice(0, count);
  }

  /** Ends the process at once, and waits for its end. */
  async kill(): Promise<void> {
    const ended = once(this.process, "exit");
    this.process.kill("SIGKILL");
    await ended;
  }

  /** Stops the process until `resume`. */
  pause(): void {
    this.process.kill("SIGSTOP");
  }

  resume(): void {
    this.process.kill("SIGCONT");
  }
}

/** Starts processes of one service on one Postgres database. */
export class Replicas {
  readonly #postgresUrl: string;
  readonly #folder = mkdtempSync(join(tmpdir(), "depute-replicas-"));
  readonly #masterKeyFile = join(this.#folder, "master.key");
  readonly #children: ChildProcess[] = [];

  constructor(postgresUrl: string) {
    this.#postgresUrl = postgresUrl;
    writeFileSync(this.#masterKeyFile, randomBytes(32).toString("base64url"), { mode: 0o600 });
  }

  /** The folder of the processes' files. */
  get folder(): string {
    return this.#folder;
  }

  /** Returns the settings that processes on one new schema share. */
  settings(env: Record<string, string> = {}): Record<string, string> {
    return {
      DEPUTE_REPLICATED: "true",
      DEPUTE_POSTGRES_URL: this.#postgresUrl,
      DEPUTE_POSTGRES_SCHEMA_PREFIX: freeSchema().slice(0, 20),
      DEPUTE_MASTER_KEY_FILE: this.#masterKeyFile,
      DEPUTE_LOG_LEVEL: "error",
      ...env,
    };
  }

  /** Starts several processes at the same time. */
  start(service: string, count: number, settings = this.settings()): Promise<Replica[]> {
    return Promise.all(Array.from({ length: count }, () => this.startOne(service, settings)));
  }

  async startOne(service: string, settings: Record<string, string>): Promise<Replica> {
    for (let remainingTries = 3; ; remainingTries--) {
      try {
        return await this.#startOnce(service, settings);
      } catch (error) {
        // On a busy machine, the database may answer too late, and the process ends. Then this method starts another
        // one.
        const isLate = (error as Error).message.includes("the database does not answer");
        if (!isLate || remainingTries === 1) throw error;
      }
    }
  }

  async #startOnce(service: string, settings: Record<string, string>): Promise<Replica> {
    const child = spawn(process.execPath, [MAIN, "serve", service, `--${service}-port`, "0"], {
      env: { ...process.env, DEPUTE_DATA_DIR: mkdtempSync(join(this.#folder, "data-")), ...settings },
      stdio: ["ignore", "pipe", "pipe"],
    });
    this.#children.push(child);
    const logged = text(child.stderr);
    for await (const line of createInterface(child.stdout)) {
      const url = /listens on (http:\S+)/.exec(line)?.[1];
      if (url !== undefined) return new Replica(child, url);
    }
    throw new Error(`a replica ended: ${await logged}`);
  }

  /** Ends all processes. */
  endAll(): void {
    for (const child of this.#children.splice(0)) child.kill("SIGKILL");
  }

  /** Ends all processes and deletes their files. */
  close(): void {
    this.endAll();
    rmSync(this.#folder, { recursive: true, force: true });
  }
}
