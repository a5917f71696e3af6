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
import { LeaseLost, Released, runAssignment } from "./run-assignment.ts";

beforeEach(() => {
  vi.useFakeTimers({ now: 1_000_000 });
});
afterEach(() => {
  vi.useRealTimers();
});

const LEASE = create(LeaseSchema, { taskId: "t", epoch: 1n });

/** The fields of an assignment that vary between the tests. */
interface AssignmentParts {
  readonly heartbeatInterval?: Duration;
  readonly leaseExpireTime?: Timestamp;
  /** The task's status. Default: running. */
  readonly status?: TaskStatus;
  /** Time after which the lease expires without a heartbeat. Default: the task does not state it. */
  readonly lease?: Duration;
}

/** Works for some milliseconds. Returns the times of the heartbeats, counted from the start of the work. */
function doWork(
  lastsMs: number,
  { status = TaskStatus.RUNNING, lease: heartbeat, ...parts }: AssignmentParts = {},
  answer: () => Promise<object> = () => new Promise(() => {}),
  ignoresSignal = false,
) {
  const startMs = Date.now();
  const beats: number[] = [];
  const callNames: string[] = [];
  const stop = new AbortController();
  const calls = {
    async heartbeatAssignment(_: unknown, { signal }: { signal: AbortSignal }) {
      beats.push(Date.now() - startMs);
      const ended = new Promise<never>((_, reject) =>
        signal.addEventListener("abort", () => reject(signal.reason)),
      );
      return { providedInputs: [], ...(await Promise.race([answer(), ended])) };
    },
    startAssignment: async () => ({ calls: callNames.push("start") }),
    completeAssignment: async () => ({ calls: callNames.push("complete") }),
    releaseAssignment: async () => ({ calls: callNames.push("release") }),
  };
  const done = runAssignment(
    {
      calls: calls as unknown as Client<typeof WorkerService>,
      async work(_, { signal }) {
        callNames.push("work");
        await new Promise<void>((resolve) => {
          setTimeout(resolve, lastsMs);
          if (!ignoresSignal) signal.addEventListener("abort", () => resolve());
        });
        return { output: null };
      },
    },
    create(AssignmentSchema, {
      task: create(TaskSchema, { id: "t", status, ...(heartbeat && { limits: { heartbeat } }) }),
      heartbeatInterval: durationFromMs(10_000),
      ...parts,
    }),
    LEASE,
    stop,
  );
  return { beats, callNames, stop, done };
}

test("short work sends no heartbeat", async () => {
  const { beats, callNames, done } = doWork(49);
  await vi.advanceTimersByTimeAsync(49);
  await done;
  expect({ beats, callNames }).toEqual({ beats: [], callNames: ["work", "complete"] });
  expect(vi.getTimerCount()).toBe(0);
});

test("long work extends its lease soon after its start, and then at each interval", async () => {
  const { beats, done } = doWork(25_000, {}, async () => ({ directive: WorkerDirective.CONTINUE }));
  await vi.advanceTimersByTimeAsync(25_000);
  await done;
  expect(beats).toEqual([50, 10_050, 20_050]);
});

test.each<[string, AssignmentParts, number]>([
  [
    "is extended before the heartbeat interval, if it is short",
    { heartbeatInterval: durationFromMs(20) },
    20,
  ],
  ["is extended before half of it has passed", { leaseExpireTime: timestampFromMs(1_000_060) }, 30],
  ["is extended at once when it may have ended", { leaseExpireTime: timestampFromMs(999_000) }, 0],
  ["is not extended when it has just begun", { leaseExpireTime: timestampFromMs(1_030_000) }, 50],
])("a lease %s", async (_, assignment, first) => {
  const { beats, done } = doWork(200, assignment, async () => ({}));
  await vi.advanceTimersByTimeAsync(200);
  await done;
  expect(beats[0]).toBe(first);
});

test("a heartbeat that is open at the end of the work ends soon, and its answer is ignored", async () => {
  const answer = Promise.withResolvers<object>();
  const { callNames, stop, done } = doWork(60, {}, () => answer.promise);
  await vi.advanceTimersByTimeAsync(60 + 999);
  expect(callNames).toEqual(["work", "complete"]);
  answer.resolve({ directive: WorkerDirective.STOP });
  await done;
  expect(stop.signal.aborted).toBe(false);
  expect(vi.getTimerCount()).toBe(0);

  const unanswered = doWork(60);
  await vi.advanceTimersByTimeAsync(60 + 1_000);
  await unanswered.done;
});

test("work aborts when no heartbeat was answered for the duration of a lease, and then makes no call", async () => {
  const lease = durationFromMs(30_000);
  let isReachable = true;
  const unreachable = new ConnectError("unreachable", Code.Unavailable);
  const { callNames, stop, done } = doWork(120_000, { lease }, () =>
    isReachable ? Promise.resolve({}) : Promise.reject(unreachable),
  );
  await vi.advanceTimersByTimeAsync(60_000);
  isReachable = false;
  await vi.advanceTimersByTimeAsync(15_000);
  expect(stop.signal.aborted).toBe(false);
  await vi.advanceTimersByTimeAsync(20_000);
  await done;
  expect(stop.signal.reason).toBeInstanceOf(LeaseLost);
  expect(callNames).toEqual(["work"]);
});

test.each<[string, () => Promise<object>, string[]]>([
  ["was cancelled", async () => ({ directive: WorkerDirective.STOP }), ["work"]],
  [
    "was cancelled with a grace period",
    async () => ({ directive: WorkerDirective.CANCEL }),
    ["work", "release"],
  ],
  ["was lost", () => Promise.reject(new ConnectError("gone", Code.Aborted)), ["work"]],
])("a worker whose task %s is notified by its first heartbeat", async (_, answer, expected) => {
  const { callNames, stop, done } = doWork(60_000, {}, answer);
  await vi.advanceTimersByTimeAsync(49);
  expect(stop.signal.aborted).toBe(false);
  await vi.advanceTimersByTimeAsync(1);
  await done;
  expect(callNames).toEqual(expected);
});

test.each<[string, unknown, string[]]>([
  ["stops", new Released(), ["work", "release"]],
  ["lost its lease", new LeaseLost("lost"), ["work"]],
])("work that ignores its signal is abandoned when its worker %s", async (_, reason, expected) => {
  const { callNames, stop, done } = doWork(60_000, {}, async () => ({}), true);
  const ended = vi.fn();
  void done.then(ended);
  await vi.advanceTimersByTimeAsync(100);
  stop.abort(reason);
  await vi.advanceTimersByTimeAsync(9_999);
  expect(ended).not.toHaveBeenCalled();
  await vi.advanceTimersByTimeAsync(1);
  await done;
  expect(callNames).toEqual(expected);
});

test.each([
  ["running", TaskStatus.RUNNING, ["release"]],
  ["accepted", TaskStatus.ACCEPTED, ["start", "release"]],
])("a task returned before it starts, %s, does not start", async (_, status, expected) => {
  const { callNames, stop, done } = doWork(0, { status });
  stop.abort(new Released());
  await vi.advanceTimersByTimeAsync(0);
  await done;
  expect(callNames).toEqual(expected);
});
