import { create } from "@bufbuild/protobuf";
import { type Client, Code, ConnectError, createClient, createRouterTransport } from "@connectrpc/connect";
import { TaskSchema, TaskStatus } from "@depute/contracts/depute/tasks/v1/task_pb";
import { WorkerDirective, WorkerService } from "@depute/contracts/depute/tasks/v1/worker_service_pb";
import { ErrorInfoSchema } from "@depute/contracts/google/rpc/error_details_pb";
import { afterEach, describe, expect, test } from "vitest";
import { type Work, WorkFailure, WorkSuspension } from "./work.ts";
import { startWorker, type Worker } from "./worker.ts";

/** A fake platform that has tasks for the worker, and records the worker's calls. */
interface Scene {
  calls: Client<typeof WorkerService>;
  /** Calls in order, each with its method and relevant fields. */
  callNames: string[];
  /** The parameters of the worker's requests for work. */
  polls: { capacity: number; begin: boolean }[];
  /** The waits in seconds that the worker's heartbeats allow. */
  waits: number[];
  /** Resolves at the first call that ends the attempt. */
  ended: Promise<void>;
}

interface Script {
  /** The error that the first call of the method `on` gets. */
  stumble?: { on: string; code: Code; reason?: string };
  /** The directive in the answers to progress reports and checkpoints. Default: continue. */
  directive?: WorkerDirective;
  /** The task's status when the worker gets it. */
  status?: TaskStatus;
  /** The code of the error with which the platform refuses every progress report; absent if it accepts them. */
  refuse?: Code;
  /** Number of tasks. Default: 1; the first is `t`. */
  tasks?: number;
  /**
   * Whether the tasks have no worker token. The worker then completes them in batches, because the platform answers
   * such completions at once. Default: false.
   */
  isFree?: boolean;
}

function scene(script: Script = {}): Scene {
  const callNames: string[] = [];
  const ended = Promise.withResolvers<void>();
  const answered = Promise.withResolvers<void>();
  const polls: { capacity: number; begin: boolean }[] = [];
  const waits: number[] = [];
  let stumble = script.stumble;
  const note = (method: string, detail = "") => {
    if (stumble?.on === method) {
      const { code, reason } = stumble;
      stumble = undefined;
      const details = [{ desc: ErrorInfoSchema, value: { domain: "depute.dev", reason: reason ?? "" } }];
      throw new ConnectError("scripted", code, undefined, reason === undefined ? [] : details);
    }
    callNames.push(detail === "" ? method : `${method} ${detail}`);
  };
  const answer = (method: string, detail = "") => {
    note(method, detail);
    return {};
  };
  const end = (method: string, detail = "") => {
    note(method, detail);
    ended.resolve();
    return {};
  };
  let assigned = false;
  const transport = createRouterTransport(({ service }) => {
    service(WorkerService, {
      async *watchAssignments({ capacity, begin }, context) {
        polls.push({ capacity, begin });
        const { tasks = 1, isFree = false } = script;
        for (let i = 0; i < tasks && !assigned; i++) {
          const id = i === 0 ? "t" : `t${i}`;
          yield {
            assignment: {
              lease: { taskId: id, epoch: 1n },
              task: create(TaskSchema, {
                id,
                status: script.status ?? TaskStatus.ACCEPTED,
                input: { kind: { case: "stringValue", value: "in" } },
              }),
              heartbeatInterval: { seconds: 60n },
              workerToken: isFree ? "" : "token",
              checkpoint: { kind: { case: "numberValue", value: 3 } },
            },
          };
        }
        assigned = true;
        await new Promise((resolve) => context.signal.addEventListener("abort", resolve));
      },
      startAssignment: () => answer("start"),
      async heartbeatAssignment({ wait }, { signal }) {
        waits.push(Number(wait?.seconds));
        await Promise.race([
          answered.promise,
          ended.promise,
          new Promise((resolve) => signal.addEventListener("abort", resolve)),
        ]);
        return { providedInputs: [{ kind: { case: "stringValue", value: "blue" } }] };
      },
      requestInput({ question }) {
        note("ask", question?.prompt);
        answered.resolve();
        return {};
      },
      saveCheckpoint({ checkpoint }) {
        note("checkpoint", String(checkpoint?.kind.value));
        return { directive: script.directive ?? WorkerDirective.CONTINUE };
      },
      suspendAssignment: ({ checkpoint, reason }) => end("suspend", `${checkpoint?.kind.value} ${reason}`),
      reportProgress({ progress, requestId }) {
        note("progress", `${progress?.processed}/${progress?.total} ${requestId === "" ? "no id" : "id"}`);
        if (script.refuse !== undefined) throw new ConnectError("scripted", script.refuse);
        return { directive: script.directive ?? WorkerDirective.CONTINUE };
      },
      reportPartial: ({ resolvedLevel }) => answer("partial", resolvedLevel),
      completeAssignment: ({ output, usage }) =>
        end("complete", `${output?.minimal} ${usage?.costMicrocents}`),
      batchCompleteAssignments({ requests }) {
        end("complete together", requests.map(({ lease }) => lease?.taskId).join(" "));
        return {
          outcomes: requests.map(() => ({
            outcome: { case: "status" as const, value: TaskStatus.COMPLETED },
          })),
        };
      },
      failAssignment: ({ failure }) =>
        end("fail", `${failure?.reason} ${failure?.retryable ? "retryable" : "final"}`),
      releaseAssignment: () => end("release"),
    });
  });
  return { calls: createClient(WorkerService, transport), callNames, polls, waits, ended: ended.promise };
}

let running: Worker | undefined;
afterEach(async () => {
  await running?.stop(0);
  running = undefined;
});

function begin(scene: Scene, work: Work, capacity = 1): void {
  running = startWorker({ calls: scene.calls, agentId: "a", work, capacity });
}

const good: Work = async (input, { progress, partial, workerToken }) => {
  await progress(1, 2);
  await partial({ so: "far" });
  return { output: { input, workerToken }, minimal: "done", costMicrocents: 7n };
};

describe("a worker", () => {
  test("starts, reports, completes", async () => {
    const one = scene();
    begin(one, good);
    await one.ended;
    expect(one.callNames).toEqual(["start", "progress 1/2 id", "partial compact", "complete done 7"]);
  });

  test.each(["start", "progress", "partial", "complete"])(
    "retries %s while the platform is unreachable",
    async (on) => {
      const one = scene({ stumble: { on, code: Code.Unavailable } });
      begin(one, good);
      await one.ended;
      expect(one.callNames).toEqual(["start", "progress 1/2 id", "partial compact", "complete done 7"]);
    },
  );

  test("sends its result again after a review, and reports any other error", async () => {
    const code = Code.FailedPrecondition;
    const one = scene({ stumble: { on: "complete", code, reason: "REVIEW_PENDING" } });
    begin(one, good);
    await one.ended;
    expect(one.callNames.at(-1)).toBe("complete done 7");
    await running?.stop(0);
    const other = scene({ stumble: { on: "complete", code, reason: "TASK_STATE_CONFLICT" } });
    begin(other, good);
    await other.ended;
    expect(other.callNames.at(-1)).toBe("fail WORKER_ERROR retryable");
  });

  test.each<[string, unknown, string]>([
    ["an unknown error is retryable", new Error("x"), "fail WORKER_ERROR retryable"],
    ["a WorkFailure states its reason", new WorkFailure("BAD_INPUT", "x", false), "fail BAD_INPUT final"],
    ["a thrown value that is not an error is quoted", "thrown text", "fail WORKER_ERROR retryable"],
  ])("%s", async (_, thrown, expected) => {
    const one = scene();
    begin(one, () => Promise.reject(thrown));
    await one.ended;
    expect(one.callNames).toEqual(["start", expected]);
  });

  test("a result that the platform refuses fails the attempt", async () => {
    const one = scene({ stumble: { on: "complete", code: Code.InvalidArgument } });
    begin(one, good);
    await one.ended;
    expect(one.callNames.at(-1)).toBe("fail WORKER_ERROR retryable");
  });

  test.each([
    ["ordered to stop", { directive: WorkerDirective.STOP }],
    ["with a lost lease", { refuse: Code.Aborted }],
    ["after the end of its authority", { refuse: Code.PermissionDenied }],
  ])("%s, the worker's signal aborts, and the worker makes no further call", async (_, script) => {
    const one = scene(script);
    const aborted = Promise.withResolvers<void>();
    begin(one, async (_input, { progress, signal }) => {
      signal.addEventListener("abort", () => aborted.resolve());
      await progress(1, 2);
      return { output: null };
    });
    await aborted.promise;
    await running?.stop(0);
    expect(one.callNames).toEqual(["start", "progress 1/2 id"]);
  });

  test("cancelled with a grace period, aborts the signal of the work, and requeues the task", async () => {
    const one = scene({ directive: WorkerDirective.CANCEL });
    const cleaned = Promise.withResolvers<void>();
    begin(one, async (_input, { progress, signal }) => {
      await progress(1, 2).catch(() => {});
      expect(signal.aborted).toBe(true);
      cleaned.resolve();
      return { output: null };
    });
    await cleaned.promise;
    await one.ended;
    expect(one.callNames).toEqual(["start", "progress 1/2 id", "release"]);
  });

  test("does not start a task that is already running", async () => {
    const one = scene({ status: TaskStatus.RUNNING });
    begin(one, good);
    await one.ended;
    expect(one.callNames).toEqual(["progress 1/2 id", "partial compact", "complete done 7"]);
  });

  test("requests tasks that are already running", async () => {
    const one = scene();
    begin(one, good, 7);
    await one.ended;
    expect(one.polls).toEqual([{ capacity: 7, begin: true }]);
  });

  test("completes fast results in one batch, without a heartbeat", async () => {
    const one = scene({ status: TaskStatus.RUNNING, tasks: 3, isFree: true });
    begin(one, async () => ({ output: null }), 3);
    await one.ended;
    await running?.stop();
    expect(one.callNames).toEqual(["complete together t t1 t2"]);
    expect(one.waits).toEqual([]);
  });

  test("retries a batch while the platform is unreachable", async () => {
    const stumble = { on: "complete together", code: Code.Unavailable };
    const one = scene({ status: TaskStatus.RUNNING, tasks: 2, isFree: true, stumble });
    begin(one, async () => ({ output: null }), 2);
    await one.ended;
    expect(one.callNames).toEqual(["complete together t t1"]);
  });

  test("returns tasks at once that arrive after its stop", async () => {
    const { calls, callNames } = scene();
    const late = Promise.withResolvers<void>();
    let works = 0;
    running = startWorker({
      // Simulates a stream that delivers an assignment after the worker has left the stream.
      calls: {
        ...calls,
        async *watchAssignments(request) {
          await late.promise;
          for await (const answer of calls.watchAssignments(request)) return yield answer;
        },
      },
      agentId: "a",
      work: async () => ({ output: ++works }),
    });
    const stopped = running.stop();
    late.resolve();
    await stopped;
    expect({ callNames, works }).toEqual({ callNames: ["release"], works: 0 });
  });

  test("stopped during the work, returns the task", async () => {
    const one = scene();
    const working = Promise.withResolvers<void>();
    begin(one, (_input, { signal }) => {
      working.resolve();
      return new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
    });
    await working.promise;
    await running?.stop(0);
    expect(one.callNames).toEqual(["start", "release"]);
  });

  test("continues from an earlier attempt's checkpoint, and saves its own", async () => {
    const one = scene();
    begin(one, async (_input, { saved, checkpoint }) => {
      await checkpoint(Number(saved) + 1);
      return { output: null, minimal: "done" };
    });
    await one.ended;
    expect(one.callNames).toEqual(["start", "checkpoint 4", "complete done 0"]);
  });

  test("with an order to suspend, suspends at its next checkpoint", async () => {
    const one = scene({ directive: WorkerDirective.SUSPEND });
    begin(one, async (_input, { progress, checkpoint, interrupting }) => {
      await progress(1, 2);
      expect(interrupting.aborted).toBe(true);
      await checkpoint(1);
      throw new Error("not reached");
    });
    await one.ended;
    expect(one.callNames).toEqual(["start", "progress 1/2 id", "checkpoint 1", "suspend undefined "]);
  });

  test("suspends a task that cannot continue", async () => {
    const one = scene();
    begin(one, () => Promise.reject(new WorkSuspension("no quota", 5)));
    await one.ended;
    expect(one.callNames).toEqual(["start", "suspend 5 no quota"]);
  });

  test("asks a question, and gets the answer with a heartbeat", async () => {
    const one = scene();
    begin(one, async (_input, { ask }) => ({ output: null, minimal: String(await ask("Which colour?")) }));
    await one.ended;
    expect(one.callNames).toEqual(["start", "ask Which colour?", "complete blue 0"]);
  });

  test("limits the wait of a heartbeat to the timeout of a call", async () => {
    const one = scene();
    begin(one, async (_input, { ask }) => ({ output: await ask("Which?") }));
    await one.ended;
    expect(one.waits[0]).toBe(20);
  });

  test("lets timers run while the platform answers every heartbeat with inputs", async () => {
    const one = scene();
    begin(one, async (_input, { ask }) => {
      const output = await ask("Which?");
      await new Promise((resolve) => setTimeout(resolve, 20));
      return { output };
    });
    await one.ended;
    expect(one.callNames.at(-1)).toMatch(/^complete/);
  });

  test("saves a checkpoint while its task is returned", async () => {
    const one = scene();
    const working = Promise.withResolvers<void>();
    begin(one, async (_input, { signal, checkpoint }) => {
      working.resolve();
      await new Promise((resolve) => signal.addEventListener("abort", resolve));
      await checkpoint(9);
      return { output: null };
    });
    await working.promise;
    await running?.stop(0);
    expect(one.callNames).toEqual(["start", "checkpoint 9", "release"]);
  });
});
