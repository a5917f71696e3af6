import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { type Bench, openBench } from "../../testing/bench.ts";

let bench: Bench;
const leaving = new AbortController();
beforeEach(async () => {
  bench = await openBench();
});
afterEach(() => bench.close());

const SILENT_MS = 30_000;
const draft = { agentId: "worker", description: "slow" };

/** Returns the next message of a stream after a period of silence. */
async function afterSilence<T>(stream: AsyncIterator<T>): Promise<T> {
  const next = stream.next();
  // Lets the stream run until it waits, so that the silence begins before the clock moves.
  for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve));
  await bench.pass(SILENT_MS);
  return (await next).value;
}

describe("a heartbeat of a silent stream states its position", () => {
  test("in events, with the cursor to resume from", async () => {
    const { task } = await bench.tasks.createTask({ requestId: "one", draft });
    const taskId = task?.id ?? "";
    const stream = bench.tasks.watchTask({ taskId }, { signal: leaving.signal })[Symbol.asyncIterator]();
    expect((await stream.next()).value?.taskEvent?.sequence).toBe(1n);
    for (let beat = 0; beat < 2; beat++) {
      const heartbeats = await afterSilence(stream);
      expect(heartbeats.taskEvent).toBeUndefined();
      expect(heartbeats.heartbeat?.afterSequence).toBe(1n);
    }
    const next = stream.next();
    await bench.tasks.cancelTask({ taskId });
    expect((await next).value?.taskEvent?.sequence).toBe(2n);
    expect((await stream.next()).done).toBe(true);
  });

  test("in events after a cursor", async () => {
    const { task } = await bench.tasks.createTask({ requestId: "one", draft });
    const request = { taskId: task?.id ?? "", afterSequence: 1n };
    const stream = bench.tasks.watchTask(request)[Symbol.asyncIterator]();
    expect((await afterSilence(stream)).heartbeat?.afterSequence).toBe(1n);
    await stream.return?.();
  });

  test("in a delegation", async () => {
    const stream = bench.tasks.delegateTask({ requestId: "one", draft })[Symbol.asyncIterator]();
    await stream.next();
    expect((await afterSilence(stream)).heartbeat?.afterSequence).toBe(1n);
    await stream.return?.();
  });

  test("in assignments, which then continue", async () => {
    const stream = bench.workers.watchAssignments({ agentId: "worker" })[Symbol.asyncIterator]();
    const silent = await afterSilence(stream);
    expect(silent.assignment).toBeUndefined();
    expect(silent.heartbeat).toBeDefined();
    const next = stream.next();
    const { task } = await bench.tasks.createTask({ requestId: "one", draft });
    expect((await next).value?.assignment?.lease?.taskId).toBe(task?.id);
    await stream.return?.();
  });
});
