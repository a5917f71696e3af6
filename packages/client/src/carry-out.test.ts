import { create } from "@bufbuild/protobuf";
import { type Duration, durationFromMs, type Timestamp, timestampFromMs } from "@bufbuild/protobuf/wkt";
import { type Client, Code, ConnectError } from "@connectrpc/connect";
import { TaskSchema, TaskStatus } from "@depute/contracts/depute/tasks/v1/task_pb";
import {
  AssignmentSchema,
  LeaseSchema,
  WorkerDirective,
  type WorkerService,
} from "@depute/contracts/depute/tasks/v1/worker_service_pb";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { carryOut, Released } from "./carry-out.ts";

beforeEach(() => {
  vi.useFakeTimers({ now: 1_000_000 });
});
afterEach(() => {
  vi.useRealTimers();
});

const LEASE = create(LeaseSchema, { taskId: "t", epoch: 1n });

/** What matters of an assignment. */
interface Given {
  readonly heartbeatInterval?: Duration;
  readonly leaseExpireTime?: Timestamp;
  /** Running when absent. */
  readonly status?: TaskStatus;
}

/** Work that lasts so long, milliseconds; tells when heartbeats were sent, from its beginning. */
function doWork(
  lastsMs: number,
  { status = TaskStatus.RUNNING, ...given }: Given = {},
  answer: () => Promise<object> = () => new Promise(() => {}),
) {
  const startMs = Date.now();
  const beats: number[] = [];
  const told: string[] = [];
  const stop = new AbortController();
  const calls = {
    async heartbeatAssignment(_: unknown, { signal }: { signal: AbortSignal }) {
      beats.push(Date.now() - startMs);
      const ended = new Promise<never>((_, reject) =>
        signal.addEventListener("abort", () => reject(signal.reason)),
      );
      return { providedInputs: [], ...(await Promise.race([answer(), ended])) };
    },
    startAssignment: async () => ({ told: told.push("start") }),
    completeAssignment: async () => ({ told: told.push("complete") }),
    releaseAssignment: async () => ({ told: told.push("release") }),
  };
  const done = carryOut(
    {
      calls: calls as unknown as Client<typeof WorkerService>,
      async work(_, { signal }) {
        told.push("work");
        await new Promise<void>((resolve) => {
          setTimeout(resolve, lastsMs);
          signal.addEventListener("abort", () => resolve());
        });
        return { output: null };
      },
    },
    create(AssignmentSchema, {
      task: create(TaskSchema, { id: "t", status }),
      heartbeatInterval: durationFromMs(10_000),
      ...given,
    }),
    LEASE,
    stop,
  );
  return { beats, told, stop, done };
}

test("work that is over soon costs no heartbeat", async () => {
  const { beats, told, done } = doWork(49);
  await vi.advanceTimersByTimeAsync(49);
  await done;
  expect({ beats, told }).toEqual({ beats: [], told: ["work", "complete"] });
  expect(vi.getTimerCount()).toBe(0);
});

test("work that lasts is kept from early on", async () => {
  const { beats, done } = doWork(25_000, {}, async () => ({ directive: WorkerDirective.CONTINUE }));
  await vi.advanceTimersByTimeAsync(25_000);
  await done;
  expect(beats).toEqual([50, 10_050, 20_050]);
});

test.each<[string, Given, number]>([
  ["is kept sooner than its interval says", { heartbeatInterval: durationFromMs(20) }, 20],
  ["is kept before half of it is over", { leaseExpireTime: timestampFromMs(1_000_060) }, 30],
  ["is kept at once when it may be over", { leaseExpireTime: timestampFromMs(999_000) }, 0],
  ["has time when it has just begun", { leaseExpireTime: timestampFromMs(1_030_000) }, 50],
])("a lease %s", async (_, assignment, first) => {
  const { beats, done } = doWork(200, assignment, async () => ({}));
  await vi.advanceTimersByTimeAsync(200);
  await done;
  expect(beats[0]).toBe(first);
});

test("a heartbeat that is open when the work is over is left to be answered, for a while, and says nothing to it", async () => {
  const answer = Promise.withResolvers<object>();
  const { told, stop, done } = doWork(60, {}, () => answer.promise);
  await vi.advanceTimersByTimeAsync(60 + 999);
  expect(told).toEqual(["work", "complete"]);
  answer.resolve({ directive: WorkerDirective.STOP });
  await done;
  expect(stop.signal.aborted).toBe(false);
  expect(vi.getTimerCount()).toBe(0);

  const unanswered = doWork(60);
  await vi.advanceTimersByTimeAsync(60 + 1_000);
  await unanswered.done;
});

test.each<[string, () => Promise<object>, string[]]>([
  ["was called off", async () => ({ directive: WorkerDirective.STOP }), ["work"]],
  [
    "was called off with time to end",
    async () => ({ directive: WorkerDirective.CANCEL }),
    ["work", "release"],
  ],
  ["was lost", () => Promise.reject(new ConnectError("gone", Code.Aborted)), ["work"]],
])("work that %s meanwhile hears of it with the first heartbeat", async (_, answer, expected) => {
  const { told, stop, done } = doWork(60_000, {}, answer);
  await vi.advanceTimersByTimeAsync(49);
  expect(stop.signal.aborted).toBe(false);
  await vi.advanceTimersByTimeAsync(1);
  await done;
  expect(told).toEqual(expected);
});

test.each([
  ["running", TaskStatus.RUNNING, ["release"]],
  ["accepted", TaskStatus.ACCEPTED, ["start", "release"]],
])("what is given back before it is worked on, %s, is not worked on", async (_, status, expected) => {
  const { told, stop, done } = doWork(0, { status });
  stop.abort(new Released());
  await vi.advanceTimersByTimeAsync(0);
  await done;
  expect(told).toEqual(expected);
});
