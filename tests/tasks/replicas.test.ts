import { redisForTests } from "@depute/bus/testing";
import { postgresForTests } from "@depute/store/testing";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import type { Replica } from "../replicas/replica.ts";
import {
  call,
  complete,
  create,
  type LeaseJson,
  logOf,
  Stage,
  TASKS,
  take,
  taskOf,
  WORKERS,
} from "./stage.ts";

/**
 * This file tests several processes of the tasks service on one Postgres database. A client that shares no code
 * with them calls them as JSON over HTTP. Without Redis, the processes share only the database.
 */

const postgres = await postgresForTests();
const redis = await redisForTests();
afterAll(async () => {
  await postgres?.stop();
  await redis?.stop();
});

const PATIENCE = { timeout: 15_000, interval: 50 };
const WHOLE_LOG = ["1 created", "2 accepted", "3 started", "4 completed"];

const BUSES = [
  { bus: "without Redis", env: {} },
  ...(redis === undefined ? [] : [{ bus: "with Redis", env: { DEPUTE_REDIS_URL: redis.url } }]),
];

describe.skipIf(postgres === undefined).each(BUSES)("three replicas of the tasks service $bus", ({ env }) => {
  let stage: Stage;
  beforeAll(async () => {
    stage = await Stage.open(postgres?.url ?? "", 3, env);
  }, 120_000);
  afterAll(() => stage?.close());
  afterEach(() => {
    for (const replica of stage.replicas) replica.resume();
  });

  /** Waits until the log of a completed task is whole at each replica. */
  async function expectWholeLogs(taskIds: readonly string[]): Promise<void> {
    for (const taskId of taskIds) {
      const logs = await Promise.all(
        stage.replicas.map((replica) => logOf(replica, taskId, WHOLE_LOG.length)),
      );
      expect(logs).toEqual(stage.replicas.map(() => WHOLE_LOG));
    }
  }

  test("handle one task: created at one, run at another, watched at a third, with every acknowledged write visible", async () => {
    const agentId = await stage.agent();
    for (let n = 0; n < 12; n++) {
      const [a, b, c] = [stage.at(n), stage.at(n + 1), stage.at(n + 2)];
      const taking = take(b, agentId, "worker");
      const created = await create(a, agentId);
      expect((await taskOf(c, created.id)).id).toBe(created.id);
      const watching = logOf(c, created.id, WHOLE_LOG.length);
      const [assignment] = await taking;
      expect(assignment?.task.id).toBe(created.id);
      const { code } = await complete(a, assignment?.lease as LeaseJson);
      expect(code).toBeUndefined();
      for (const replica of stage.replicas) {
        expect((await taskOf(replica, created.id)).status).toBe("TASK_STATUS_COMPLETED");
      }
      expect(await watching).toEqual(WHOLE_LOG);
    }
  }, 60_000);

  test("a call that waits at one replica gets the result that another one accepts", async () => {
    const agentId = await stage.agent();
    for (let n = 0; n < 6; n++) {
      const waiting = create(stage.at(n), agentId, { wait: "20s" });
      const [assignment] = await take(stage.at(n + 1), agentId, "worker");
      const beganMs = performance.now();
      await complete(stage.at(n + 2), assignment?.lease as LeaseJson);
      const task = await waiting;
      expect(task).toMatchObject({ status: "TASK_STATUS_COMPLETED", output: { full: { done: task.id } } });
      // Without a wake-up, the call would read again after a poll interval.
      expect(performance.now() - beganMs).toBeLessThan(1_000);
    }
  }, 60_000);

  test("a stream of one replica gets a task that another one creates, and more when a third frees its capacity", async () => {
    const agentId = await stage.agent();
    const request = { agentId, worker: "stream", capacity: 1, begin: true };
    const streaming = stage.at(0).stream(`${WORKERS}/WatchAssignments`, request, 4);
    const taskIds = [];
    for (let n = 0; n < 4; n++) taskIds.push((await create(stage.at(1 + (n % 2)), agentId)).id);
    let held: LeaseJson | undefined;
    for (const taskId of taskIds) {
      await expect
        .poll(async () => (await taskOf(stage.at(2), taskId)).status, PATIENCE)
        .toBe("TASK_STATUS_RUNNING");
      held = { taskId, epoch: "1" };
      expect((await complete(stage.at(1), held)).code).toBeUndefined();
    }
    const assignments = await streaming;
    expect(assignments.map(({ assignment }) => (assignment as { lease: LeaseJson }).lease.taskId)).toEqual(
      taskIds,
    );
    await expectWholeLogs(taskIds);
  }, 60_000);

  test("workers at all replicas never get the same task", async () => {
    const agentId = await stage.agent();
    const count = 90;
    const creating = Promise.all(Array.from({ length: count }, (_, n) => create(stage.at(n), agentId)));
    const taken: string[] = [];
    const work = async (number: number) => {
      while (taken.length < count) {
        const wait = taken.length < count ? "1s" : "0s";
        const assignments = await take(stage.at(number), agentId, `worker-${number}`, { capacity: 5, wait });
        taken.push(...assignments.map(({ lease }) => lease.taskId));
        for (const { lease } of assignments) {
          expect((await complete(stage.at(number + 1), lease)).code).toBeUndefined();
        }
      }
    };
    await Promise.all([creating, ...Array.from({ length: 6 }, (_, number) => work(number))]);
    const created = (await creating).map(({ id }) => id);
    expect(taken.toSorted()).toEqual(created.toSorted());
    await expectWholeLogs(created.slice(0, 20));
    for (const taskId of created) {
      expect(await taskOf(stage.at(1), taskId)).toMatchObject({
        status: "TASK_STATUS_COMPLETED",
        attempt: 1,
      });
    }
  }, 90_000);

  test("a request id at all replicas at the same time creates one task", async () => {
    const agentId = await stage.agent();
    for (let n = 0; n < 8; n++) {
      const requestId = crypto.randomUUID();
      const tasks = await Promise.all(
        [0, 1, 2, 0, 1, 2].map((number) => create(stage.at(number), agentId, { requestId })),
      );
      expect(new Set(tasks.map(({ id }) => id)).size).toBe(1);
    }
    const { tasks } = await call(stage.at(0), `${TASKS}/ListTasks`, { agentId, pageSize: 100 });
    expect(tasks).toHaveLength(8);
  }, 60_000);

  test("an agent's limit counts the work of all replicas", async () => {
    const agentId = await stage.agent();
    await call(stage.at(0), `${WORKERS}/SetDelegateLimits`, { agentId, limits: { maxHeld: 4 } });
    await Promise.all(Array.from({ length: 12 }, (_, n) => create(stage.at(n), agentId)));
    const taken = await Promise.all(
      stage.replicas.map((replica, n) => take(replica, agentId, `worker-${n}`, { capacity: 12, wait: "1s" })),
    );
    expect(taken.flat()).toHaveLength(4);
    await call(stage.at(1), `${WORKERS}/SetDelegateLimits`, {
      agentId,
      limits: { maxHeld: 4, draining: true },
    });
    await complete(stage.at(2), taken.flat()[0]?.lease as LeaseJson);
    expect(await take(stage.at(0), agentId, "worker", { capacity: 12, wait: "1s" })).toEqual([]);
  }, 60_000);

  test("a stopped replica delays the others for a moment, and its late calls change no ended task", async () => {
    const agentId = await stage.agent();
    const { id } = await create(stage.at(0), agentId);
    const [assignment] = await take(stage.at(0), agentId, "worker");
    const stopped = stage.at(0);
    // Calls in progress may hold the turn when the replica stops.
    const load = Array.from({ length: 20 }, () => create(stopped, agentId).catch(() => undefined));
    await new Promise((resolve) => setTimeout(resolve, 5));
    stopped.pause();
    const late = complete(stopped, assignment?.lease as LeaseJson).catch((error: unknown) => ({
      code: String(error),
    }));
    const beganMs = performance.now();
    await call(stage.at(1), `${TASKS}/CancelTask`, { taskId: id });
    expect(performance.now() - beganMs).toBeLessThan(3_000);
    // Longer than every lease of background work.
    await new Promise((resolve) => setTimeout(resolve, 3_500));
    stopped.resume();
    expect((await late).code).toBeDefined();
    const created = (await Promise.all(load)).filter((task) => task !== undefined);
    for (const task of created) expect((await taskOf(stage.at(2), task.id)).id).toBe(task.id);
    for (const replica of stage.replicas) {
      expect(await logOf(replica, id, 4)).toEqual(["1 created", "2 accepted", "3 started", "4 cancelled"]);
    }
  }, 60_000);

  test("a killed replica loses no acknowledged task, and the others continue within a second", async () => {
    const agentId = await stage.agent();
    const acknowledged: string[] = [];
    let isOver = false;
    /** Calls one replica after the other, until one of them answers. */
    const anywhere = async <T>(from: number, calling: (replica: Replica) => Promise<T>): Promise<T> => {
      for (let n = from; ; n++) {
        try {
          return await calling(stage.at(n));
        } catch (error) {
          if (n > from + 100) throw error;
          await new Promise((resolve) => setTimeout(resolve, 20));
        }
      }
    };
    const pauses: number[] = [];
    const creator = async (number: number) => {
      for (let lastMs = performance.now(); !isOver; lastMs = performance.now()) {
        const requestId = crypto.randomUUID();
        const task = await anywhere(number, (replica) => create(replica, agentId, { requestId }));
        pauses.push(performance.now() - lastMs);
        acknowledged.push(task.id);
      }
    };
    const done = new Set<string>();
    const worker = async (number: number) => {
      while (!isOver || done.size < acknowledged.length) {
        const taken = await anywhere(number, (replica) =>
          take(replica, agentId, `worker-${number}`, { capacity: 4, wait: "1s" }),
        );
        for (const { lease } of taken) {
          await anywhere(number + 1, async (replica) => {
            const { code } = await complete(replica, lease);
            if (code === "unavailable") throw new Error("again");
          });
          done.add(lease.taskId);
        }
      }
    };
    const working = Promise.all([creator(0), creator(1), creator(2), worker(0), worker(1), worker(2)]);
    for (let round = 0; round < 2; round++) {
      await new Promise((resolve) => setTimeout(resolve, 1_000));
      await stage.replace(round);
    }
    isOver = true;
    await working;
    expect(acknowledged.length).toBeGreaterThan(20);
    expect(Math.max(...pauses)).toBeLessThan(3_000);
    for (const taskId of acknowledged) {
      expect(await taskOf(stage.at(2), taskId)).toMatchObject({ status: "TASK_STATUS_COMPLETED" });
    }
    await expectWholeLogs(acknowledged.slice(0, 10));
  }, 120_000);

  test("time limits at a killed replica apply at the others", async () => {
    const agentId = await stage.agent();
    const { id } = await create(stage.at(0), agentId, { limits: { queue: "2s" } });
    await stage.replace(0);
    await expect
      .poll(async () => (await taskOf(stage.at(1), id)).status, PATIENCE)
      .toBe("TASK_STATUS_EXPIRED");
    expect(await logOf(stage.at(2), id, 2)).toEqual(["1 created", "2 expired"]);
  }, 60_000);

  test("replicas accept data that may not be stored if they share Redis", async () => {
    const envelope = {
      id: "notes",
      data: Buffer.from('"secret"').toString("base64"),
      ttlS: 60,
      permissions: {},
    };
    const answer = await stage.at(0).call("depute.tasks.v1.ContextService/ShareContext", {
      requestId: crypto.randomUUID(),
      envelope,
    });
    const isShared = "DEPUTE_REDIS_URL" in env;
    expect(answer).toMatchObject(isShared ? { context: {} } : { code: "invalid_argument" });
    expect(JSON.stringify(answer).includes("replicas")).toBe(!isShared);
  });
});
