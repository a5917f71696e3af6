import { redisForTests, startRedis, type TestRedis } from "@depute/bus/testing";
import { ownPostgresForTests } from "@depute/store/testing";
import { Client } from "pg";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Json, Replica } from "../replicas/replica.ts";
import { call, create, Stage, take, taskOf } from "./stage.ts";

/**
 * This file tests contexts without `persist` at two replicas with Redis. A client that shares no code with the
 * replicas calls them as JSON over HTTP.
 */

const CONTEXTS = "depute.tasks.v1.ContextService";
const postgres = await ownPostgresForTests();
const hasRedis = await redisForTests();
await hasRedis?.stop();
afterAll(() => postgres?.stop());

const base64 = (value: unknown) => Buffer.from(JSON.stringify(value)).toString("base64");
const SECRET = { note: "between us" };
const PERMISSIONS = { forward: true, persist: false, derive: true };
const PATIENCE = { timeout: 20_000, interval: 100 };

async function share(replica: Replica, more: Json = {}, request: Json = {}): Promise<string> {
  const envelope = { data: base64(SECRET), ttlS: 60, permissions: PERMISSIONS, ...more };
  const answer = await call(replica, `${CONTEXTS}/ShareContext`, {
    requestId: crypto.randomUUID(),
    envelope,
    ...request,
  });
  return (answer.context as { id: string }).id;
}
const request = (replica: Replica, contextId: string) =>
  replica.call(`${CONTEXTS}/RequestContext`, { contextId });
const revoke = (replica: Replica, contextId: string) =>
  replica.call(`${CONTEXTS}/RevokeContext`, { contextId });

/** Returns the data of an answer, or the reason of its refusal. */
function outcome(answer: Json): unknown {
  const { context, details } = answer as {
    context?: { envelope: { data?: string } };
    details?: { debug?: { reason?: string; metadata?: Json } }[];
  };
  if (context !== undefined) return JSON.parse(Buffer.from(context.envelope.data ?? "", "base64").toString());
  return details?.find(({ debug }) => debug?.reason !== undefined)?.debug?.reason ?? answer.code;
}
const read = async (replica: Replica, id: string) => outcome(await request(replica, id));

describe.skipIf(postgres === undefined || hasRedis === undefined)("two replicas with Redis", () => {
  let redis: TestRedis;
  let stage: Stage;
  let agentId: string;
  let a: Replica;
  let b: Replica;
  beforeAll(async () => {
    redis = await startRedis();
    stage = await Stage.open(postgres?.url ?? "", 2, {
      DEPUTE_REDIS_URL: redis.url,
      DEPUTE_TASKS_CONTEXT_MEMORY: "2000",
    });
    agentId = await stage.agent();
    [a, b] = [stage.at(0), stage.at(1)];
  }, 120_000);
  afterAll(async () => {
    stage?.close();
    await redis?.stop();
  });

  /** Kills Redis, and starts an empty one at the same address. */
  async function restartRedis(whileAway = async () => {}): Promise<void> {
    await redis.stop();
    await whileAway();
    redis = await startRedis(Number(new URL(redis.url).port));
  }

  test("a context shared at one is readable at both; revoked at one, it ends at the other at once", async () => {
    for (const [one, other] of [
      [a, b],
      [b, a],
    ] as const) {
      const id = await share(one);
      expect(await read(other, id)).toEqual(SECRET);
      expect(await read(one, id)).toEqual(SECRET);
      expect((await revoke(one, id)).code).toBeUndefined();
      expect(await read(other, id)).toBe("CONTEXT_EXPIRED");
    }
  });

  test("a request id and the owner's own id share one context at all replicas", async () => {
    const own = { id: "mine" };
    const same = { requestId: "once" };
    const id = await share(a, own, same);
    expect(await share(b, own, same)).toBe(id);
    expect(await share(b, own)).toBe(id);
    const changed = { ...own, data: base64("other") };
    const envelope = { ttlS: 60, permissions: PERMISSIONS, ...changed };
    const refused = (requestId: string) =>
      b.call(`${CONTEXTS}/ShareContext`, { requestId, envelope }).then(outcome);
    expect(await refused("once")).toBe("REQUEST_ID_REUSED");
    expect(await refused("another")).toBe("CONTEXT_ID_TAKEN");
    await revoke(b, id);
  });

  test("a context expires at its time, at both", async () => {
    const id = await share(a, { ttlS: 2 });
    expect(await read(b, id)).toEqual(SECRET);
    for (const replica of [a, b])
      await expect.poll(() => read(replica, id), PATIENCE).toBe("CONTEXT_EXPIRED");
  });

  test("a derived context ends with its source at the other replica", async () => {
    const source = await share(a);
    const derived = await share(b, { ttlS: 30 }, { derivedFrom: [source] });
    expect(await read(a, derived)).toEqual(SECRET);
    await revoke(a, source);
    expect(await read(b, derived)).toBe("CONTEXT_EXPIRED");
  });

  test("the bytes of both replicas together are limited, and a revocation frees space", async () => {
    const large = { data: base64("x".repeat(900)) };
    const [first, second] = [await share(a, large), await share(b, large)];
    for (const replica of [a, b]) {
      const envelope = { ...large, ttlS: 60, permissions: PERMISSIONS };
      const answer = await replica.call(`${CONTEXTS}/ShareContext`, {
        requestId: crypto.randomUUID(),
        envelope,
      });
      expect(outcome(answer)).toBe("LIMIT_EXCEEDED");
      expect(JSON.stringify(answer)).toContain("context_memory.bytes");
    }
    await revoke(b, first as string);
    await expect.poll(() => share(b, large).catch(() => undefined), PATIENCE).toEqual(expect.any(String));
    await revoke(a, second as string);
  });

  test("a task's own context, created at one, reaches a worker at the other, and is never in the database", async () => {
    const draft = {
      inputFromContext: true,
      contexts: [{ data: base64(SECRET), ttlS: 60, permissions: PERMISSIONS }],
    };
    for (const [one, other] of [
      [a, b],
      [b, a],
    ] as const) {
      const requestId = crypto.randomUUID();
      const { id } = await create(one, agentId, { ...draft, requestId });
      expect((await create(other, agentId, { ...draft, requestId })).id).toBe(id);
      const [assignment] = await take(other, agentId, `worker of ${id}`);
      expect(assignment?.task).toMatchObject({ id, input: SECRET });
      expect(await taskOf(one, id)).toMatchObject({ input: SECRET });
    }
    const client = new Client(postgres?.url);
    await client.connect();
    try {
      const { rows } = await client.query(
        "SELECT table_schema AS schema, table_name AS name FROM information_schema.tables WHERE table_schema LIKE '%tasks%'",
      );
      expect(rows.length).toBeGreaterThan(10);
      for (const { schema, name } of rows) {
        const dump = await client.query(`SELECT t::text AS line FROM "${schema}"."${name}" t`);
        const lines = dump.rows.map(({ line }) => line).join("\n");
        expect(lines).not.toContain("between us");
        expect(lines).not.toContain(Buffer.from("between us").toString("hex"));
      }
    } finally {
      await client.end();
    }
  }, 60_000);

  test("while Redis is unavailable calls are refused, a revocation succeeds, and other tasks continue", async () => {
    const [kept, revoked] = [await share(a), await share(b)];
    const waiting = await create(a, agentId, { contextIds: [kept] });
    await restartRedis(async () => {
      expect(await read(b, kept)).toBe("DEPENDENCY_UNAVAILABLE");
      expect((await revoke(a, revoked)).code).toBeUndefined();
      expect(await read(b, revoked)).toBe("CONTEXT_EXPIRED");
      const plain = await create(b, agentId);
      const [assignment] = await take(a, agentId, "worker without Redis");
      expect(assignment?.task.id).toBe(plain.id);
      expect((await taskOf(a, waiting.id)).status).toBe("TASK_STATUS_PENDING");
    });
    // The new Redis is empty. So at both replicas, the contexts of the former Redis count as expired.
    for (const replica of [a, b])
      await expect.poll(() => read(replica, kept), PATIENCE).toBe("CONTEXT_EXPIRED");
    expect(await take(b, agentId, "worker", { wait: "0.1s" })).toEqual([]);
    expect(await taskOf(a, waiting.id)).toMatchObject({ status: "TASK_STATUS_EXPIRED" });
    // A replica refuses new contexts until it has connected to the new Redis.
    const accepts = (replica: Replica) =>
      share(replica).then(
        () => true,
        () => false,
      );
    for (const replica of [a, b]) await expect.poll(() => accepts(replica), PATIENCE).toBe(true);
    expect(await read(a, await share(b))).toEqual(SECRET);
  }, 60_000);

  test("a restart of a replica loses nothing", async () => {
    const ownAgentId = await stage.agent();
    const id = await share(a);
    const pending = await create(b, ownAgentId, { contextIds: [id] });
    await stage.replace(0);
    a = stage.at(0);
    expect(await read(a, id)).toEqual(SECRET);
    expect((await taskOf(a, pending.id)).status).toBe("TASK_STATUS_PENDING");
    const [assignment] = await take(a, ownAgentId, "worker after the restart");
    expect(assignment?.task.id).toBe(pending.id);
  }, 60_000);
});

describe.skipIf(postgres === undefined)("two replicas without Redis", () => {
  test("refuse such a context, and name the remedy", async () => {
    const stage = await Stage.open(postgres?.url ?? "", 2);
    try {
      const envelope = { data: base64(SECRET), ttlS: 60, permissions: PERMISSIONS };
      const answer = await stage.at(0).call(`${CONTEXTS}/ShareContext`, { requestId: "one", envelope });
      expect(answer).toMatchObject({ code: "invalid_argument" });
      expect(answer.message).toMatch(/permissions\.persist.*without Redis/);
    } finally {
      stage.close();
    }
  }, 120_000);
});
