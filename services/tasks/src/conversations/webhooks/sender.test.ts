import { create } from "@bufbuild/protobuf";
import { TaskEventSchema } from "@depute/contracts/depute/tasks/v1/task_event_pb";
import { TaskSchema, TaskStatus } from "@depute/contracts/depute/tasks/v1/task_pb";
import { TaskPushNotificationConfigSchema } from "@depute/contracts/lf/a2a/v1/a2a_pb";
import { ManualClock } from "@depute/core";
import { createLogger, type OutboundRequest } from "@depute/service";
import { openStore, type Store } from "@depute/store";
import { afterEach, beforeEach, expect, test } from "vitest";
import type { TaskRecord } from "../../core/index.ts";
import { CONVERSATION_MIGRATIONS } from "../store/migrations.ts";
import { findWebhook, listWebhooks, putWebhook } from "../store/webhook-rows.ts";
import { WebhookSeal } from "./secrets.ts";
import { WebhookSender } from "./sender.ts";

const EVENTS = 3;
const seal = new WebhookSeal(new Uint8Array(32).fill(7));
let clock: ManualClock;
let store: Store;
let lines: string[];
let sender: WebhookSender | undefined;
beforeEach(async () => {
  clock = new ManualClock();
  lines = [];
  store = await openStore({ memory: true, migrations: CONVERSATION_MIGRATIONS, onError: () => {} });
});
afterEach(async () => {
  await sender?.close();
  await store.close();
});

/**
 * Returns the sequence of the event in a delivery's body. In these tests, each event's time in seconds is the
 * sequence.
 */
const sequenceIn = ({ body }: OutboundRequest) =>
  new Date(JSON.parse(String(body)).statusUpdate.status.timestamp).getTime() / 1000;

/** Starts a sender. Every task has three events. */
function start(send: (url: string, request: OutboundRequest) => Promise<number>): void {
  const destination = { write: (line: string) => lines.push(line) };
  const log = createLogger({ level: "trace", name: "test", destination });
  const payload = { case: "started", value: {} } as const;
  const status = TaskStatus.RUNNING;
  sender = new WebhookSender({
    engine: {
      store,
      find: async (_tx, id) => ({ task: create(TaskSchema, { id, correlationId: "c" }) }) as TaskRecord,
      events: async (_tx, taskId, after, limit) =>
        Array.from({ length: EVENTS }, (_, at) => BigInt(at + 1))
          .filter((sequence) => sequence > after)
          .slice(0, limit)
          .map((sequence) =>
            create(TaskEventSchema, { taskId, sequence, status, payload, eventTime: { seconds: sequence } }),
          ),
    },
    clock,
    timers: clock,
    random: () => 0,
    log,
    seal,
    outbound: {
      send: async (url, request) => ({ status: await send(url, request), headers: {}, body: nothing() }),
    },
  });
  sender.start();
}

/** Rejects when the signal aborts, like a request that gets no response. */
function untilAborted(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
}

async function* nothing(): AsyncGenerator<Uint8Array> {}

async function put(taskId: string, delegator = "alice", knownSequence = EVENTS): Promise<void> {
  const url = `http://example.com/${taskId}`;
  const authentication = { scheme: "Bearer", credentials: "sesame" };
  const config = create(TaskPushNotificationConfigSchema, {
    taskId,
    id: "w",
    url,
    token: "almond",
    authentication,
  });
  await store.write((tx) =>
    putWebhook(tx, {
      taskId,
      id: "w",
      delegator,
      url,
      scheme: "Bearer",
      sealed: seal.seal(config),
      sentSequence: 0,
      knownSequence,
      nextMs: clock.now(),
    }),
  );
}

const present = (taskId: string) => store.read((tx) => findWebhook(tx, taskId, "w"));

/**
 * Returns the number of failed attempts of a task's webhook; undefined after the webhook was deleted. First runs timers
 * that became due after the clock last moved.
 */
async function attemptsOf(taskId: string): Promise<number | undefined> {
  clock.advance(0);
  return (await present(taskId))?.attempts;
}

test("a webhook whose delivery fails 12 times is deleted, and no line of the log has its secrets", async () => {
  await put("t");
  const times: number[] = [];
  start(async (_, request) => {
    times.push(clock.now());
    expect(sequenceIn(request)).toBe(1);
    expect(request.headers).toMatchObject({ authorization: "Bearer sesame" });
    return 500;
  });
  for (let failures = 1; failures < 12; failures++) {
    await expect.poll(() => attemptsOf("t")).toBe(failures);
    clock.advance(3_600_000);
  }
  await expect.poll(() => attemptsOf("t")).toBeUndefined();
  expect(times).toHaveLength(12);
  expect(lines.length).toBeGreaterThanOrEqual(12);
  expect(lines.join()).not.toMatch(/sesame|almond|example\.com/);
});

test("an accepted delivery resets the count of failures, and the order stays", async () => {
  await put("t");
  const got: number[] = [];
  start(async (_, request) => {
    got.push(sequenceIn(request));
    return got.length % 2 === 0 ? 204 : 503;
  });
  for (let failures = 1; failures <= EVENTS; failures++) {
    const reached = async () => [await attemptsOf("t"), got.length];
    await expect.poll(reached).toEqual([1, 2 * failures - 1]);
    clock.advance(1000);
  }
  await expect.poll(() => attemptsOf("t").then(() => got)).toEqual([1, 1, 2, 2, 3, 3]);
});

test("a delivery whose answer was lost when the process ended is repeated after a restart", async () => {
  await put("t");
  const got: number[] = [];
  start((_, request) => {
    got.push(sequenceIn(request));
    return got.length === 1 ? Promise.resolve(200) : untilAborted(request.signal);
  });
  await expect.poll(() => got).toEqual([1, 2]);
  await sender?.close();
  expect(await present("t")).toMatchObject({ sentSequence: 1, attempts: 0 });
  start(async (_, request) => {
    got.push(sequenceIn(request));
    return 200;
  });
  await expect.poll(() => got).toEqual([1, 2, 2, 3]);
});

test("a delegator whose receivers do not answer delays no other delegator", async () => {
  for (let count = 0; count < 100; count++) await put(`hers ${count}`, "alice");
  clock.advance(1);
  await put("his", "bob");
  const got: string[] = [];
  let waiting = 0;
  start((url, { signal }) => {
    if (url.endsWith("/his")) return Promise.resolve(200).finally(() => got.push(url));
    waiting++;
    return untilAborted(signal);
  });
  await expect.poll(() => got).toHaveLength(EVENTS);
  expect(waiting).toBe(8);
});

test("nothing is sent for a webhook without new events", async () => {
  await put("t", "alice", 0);
  await put("u");
  const got: string[] = [];
  start(async (url) => {
    got.push(url);
    return 200;
  });
  await expect.poll(async () => (await present("u"))?.sentSequence).toBe(EVENTS);
  expect(new Set(got)).toEqual(new Set(["http://example.com/u"]));
  expect(await store.read((tx) => listWebhooks(tx, "t", "", 9))).toHaveLength(1);
});
