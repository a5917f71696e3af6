import { type ChildProcess, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { freeSchema, postgresForTests } from "@depute/store/testing";
import { afterAll, afterEach, describe, expect, test } from "vitest";

/**
 * This file tests several processes of the registry on one Postgres database, called as JSON over HTTP. The
 * processes share only the database: no Redis runs.
 */

const postgres = await postgresForTests();
const MAIN = fileURLToPath(new URL("../../cli/src/main.ts", import.meta.url));
const folder = mkdtempSync(join(tmpdir(), "depute-replicas-"));
const masterKeyFile = join(folder, "master.key");
writeFileSync(masterKeyFile, randomBytes(32).toString("base64url"), { mode: 0o600 });

const children: ChildProcess[] = [];
afterEach(() => {
  for (const child of children.splice(0)) child.kill("SIGKILL");
});
afterAll(async () => {
  await postgres?.stop();
  rmSync(folder, { recursive: true, force: true });
});

function spawnRegistry(env: Record<string, string>): ChildProcess {
  const child = spawn(process.execPath, [MAIN, "serve", "registry", "--registry-port", "0"], {
    env: { ...process.env, DEPUTE_DATA_DIR: mkdtempSync(join(folder, "data-")), ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  children.push(child);
  return child;
}

type Json = Record<string, unknown>;

class Replica {
  readonly #url: string;
  readonly process: ChildProcess;

  constructor(process: ChildProcess, url: string) {
    this.process = process;
    this.#url = url;
  }

  /** @param method e.g. `AgentService/GetAgent` */
  async call(method: string, request: Json): Promise<Json> {
    const answer = await fetch(`${this.#url}/depute.registry.v1.${method}`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(request),
    });
    return (await answer.json()) as Json;
  }

  register(id: string, more: Json = {}): Promise<Json> {
    return this.call("AgentService/RegisterAgent", {
      requestId: crypto.randomUUID(),
      agent: { id },
      ...more,
    });
  }

  /** The status of an agent. */
  async statusOf(id: string): Promise<unknown> {
    const { agent } = await this.call("AgentService/GetAgent", { agentId: id });
    return (agent as Json | undefined)?.status;
  }

  /** The log of agent changes from its beginning, as `sequence kind agent`. */
  async changes(count: number): Promise<string[]> {
    const ending = new AbortController();
    const body = Buffer.from(JSON.stringify({ afterSequence: "0" }));
    const envelope = Buffer.alloc(5);
    envelope.writeUInt32BE(body.length, 1);
    const answer = await fetch(`${this.#url}/depute.registry.v1.AgentService/WatchAgents`, {
      method: "POST",
      headers: { "content-type": "application/connect+json" },
      body: Buffer.concat([envelope, body]),
      signal: ending.signal,
    });
    const changes: string[] = [];
    let buffered = Buffer.alloc(0);
    for await (const chunk of answer.body ?? []) {
      buffered = Buffer.concat([buffered, chunk]);
      while (buffered.length >= 5 && buffered.length >= 5 + buffered.readUInt32BE(1)) {
        const end = 5 + buffered.readUInt32BE(1);
        const { sequence, change } = JSON.parse(buffered.subarray(5, end).toString());
        buffered = buffered.subarray(end);
        changes.push(`${sequence} ${change.kind} ${change.agentId}`);
      }
      if (changes.length >= count) break;
    }
    ending.abort();
    return changes;
  }
}

describe.skipIf(postgres === undefined)("replicas of the registry", () => {
  async function startReplicas(count: number): Promise<Replica[]> {
    const env = {
      DEPUTE_REPLICATED: "true",
      DEPUTE_POSTGRES_URL: postgres?.url ?? "",
      DEPUTE_POSTGRES_SCHEMA_PREFIX: freeSchema().slice(0, 20),
      DEPUTE_MASTER_KEY_FILE: masterKeyFile,
      DEPUTE_LOG_LEVEL: "error",
    };
    return Promise.all(
      Array.from({ length: count }, async () => {
        const child = spawnRegistry(env);
        const logged = text(child.stderr as NodeJS.ReadableStream);
        for await (const line of createInterface(child.stdout as NodeJS.ReadableStream)) {
          const url = /listens on (http:\S+)/.exec(line)?.[1];
          if (url !== undefined) return new Replica(child, url);
        }
        throw new Error(`a replica ended: ${await logged}`);
      }),
    );
  }

  test("start at the same time, and show each acknowledged write at once", async () => {
    const replicas = await startReplicas(3);
    const at = (n: number) => replicas[n % 3] as Replica;
    for (let n = 0; n < 12; n++) {
      const id = `agent-${n}`;
      await at(n).register(id);
      expect(await at(n + 1).statusOf(id)).toBe("AGENT_STATUS_ACTIVE");
      await at(n + 1).call("AgentService/DeregisterAgent", {
        requestId: crypto.randomUUID(),
        agentId: id,
      });
      expect(await at(n + 2).statusOf(id)).toBe("AGENT_STATUS_REMOVED");
      expect(await at(n).statusOf(id)).toBe("AGENT_STATUS_REMOVED");
    }
  }, 60_000);

  test("show one another to operators, and a killed one as lost", async () => {
    const [first, second, killed] = (await startReplicas(3)) as [Replica, Replica, Replica];
    const states = async (at: Replica) => {
      const { replicas } = await at.call("ClusterService/GetCluster", {});
      return (replicas as Json[] | undefined)?.map(({ service, state, version }) => [
        service,
        state,
        version,
      ]);
    };
    const SERVING = ["registry", "REPLICA_STATE_SERVING", expect.stringMatching(/^\d+\.\d+\.\d+$/)];
    const patience = { timeout: 20_000 };
    await expect.poll(() => states(first), patience).toEqual([SERVING, SERVING, SERVING]);
    killed.process.kill("SIGKILL");
    const others = async () => (await states(second))?.map(([, state]) => state).toSorted();
    await expect
      .poll(others, patience)
      .toEqual(["REPLICA_STATE_LOST", "REPLICA_STATE_SERVING", "REPLICA_STATE_SERVING"]);
    first.process.kill("SIGTERM");
    await expect.poll(others, patience).toEqual(["REPLICA_STATE_LOST", "REPLICA_STATE_SERVING"]);
  }, 90_000);

  test("keep one log of changes without gaps while all of them write", async () => {
    const replicas = await startReplicas(3);
    const ids = Array.from({ length: 60 }, (_, n) => `agent-${n}`);
    await Promise.all(ids.map((id, n) => (replicas[n % 3] as Replica).register(id)));
    const logs = await Promise.all(replicas.map((replica) => replica.changes(ids.length)));
    expect(logs[1]).toEqual(logs[0]);
    expect(logs[2]).toEqual(logs[0]);
    expect(logs[0]?.map((line) => Number(line.split(" ")[0]))).toEqual(ids.map((_, n) => n + 1));
    expect(logs[0]?.map((line) => line.split(" ")[2]).toSorted()).toEqual(ids.toSorted());
  }, 60_000);

  test("create one agent for a request id, whichever replica a retry reaches", async () => {
    const replicas = await startReplicas(2);
    const requestId = crypto.randomUUID();
    const answers = await Promise.all(
      Array.from({ length: 8 }, (_, n) => (replicas[n % 2] as Replica).register("one", { requestId })),
    );
    for (const answer of answers) expect(answer).toEqual(answers[0]);
    expect(await replicas[0]?.changes(1)).toEqual([expect.stringMatching(/^1 \S+ one$/)]);
  }, 60_000);

  test("continue when one of them is killed, and when one is stopped during its writes", async () => {
    const [killed, stopped, left] = (await startReplicas(3)) as [Replica, Replica, Replica];
    const pending = Array.from({ length: 200 }, (_, n) =>
      (n % 2 ? killed : stopped).register(`lost-${n}`).then(
        () => `lost-${n}`,
        () => undefined,
      ),
    );
    await pending[0];
    stopped.process.kill("SIGSTOP");
    killed.process.kill("SIGKILL");
    await once(killed.process, "exit");
    await left.register("after");
    expect(await left.statusOf("after")).toBe("AGENT_STATUS_ACTIVE");
    stopped.process.kill("SIGCONT");
    for (const acknowledged of await Promise.all(pending)) {
      if (acknowledged !== undefined) expect(await left.statusOf(acknowledged)).toBe("AGENT_STATUS_ACTIVE");
    }
    await expect
      .poll(() => stopped.statusOf("after").catch(() => undefined), { timeout: 20_000 })
      .toBe("AGENT_STATUS_ACTIVE");
  }, 90_000);
});

test.each([
  { missing: "a database", env: { DEPUTE_MASTER_KEY_FILE: masterKeyFile } },
  { missing: "the master key's file", env: { DEPUTE_POSTGRES_URL: "postgres://127.0.0.1:1/none" } },
])("a replica without $missing does not start", async ({ env }) => {
  const child = spawnRegistry({ DEPUTE_REPLICATED: "true", ...(env as Record<string, string>) });
  const [printed] = await Promise.all([text(child.stderr as NodeJS.ReadableStream), once(child, "exit")]);
  expect(printed).toContain("set DEPUTE_POSTGRES_URL and DEPUTE_MASTER_KEY_FILE");
  expect(child.exitCode).not.toBe(0);
});
