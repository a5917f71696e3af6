import { create, fromJson, toJson } from "@bufbuild/protobuf";
import { durationFromMs, ValueSchema } from "@bufbuild/protobuf/wkt";
import type { TaskEvent } from "@depute/contracts/depute/tasks/v1/task_event_pb";
import { type Task, TaskSchema, TaskStatus } from "@depute/contracts/depute/tasks/v1/task_pb";
import { WorkerDirective } from "@depute/contracts/depute/tasks/v1/worker_service_pb";
import { ReviewVerdict } from "@depute/contracts/depute/verifier/v1/review_service_pb";
import { reasonName, toTimestamp } from "@depute/core";
import { reasonOf } from "@depute/service";
import fc from "fast-check";
import { expect } from "vitest";
import { claim } from "../core/queue/claim.ts";
import { applyEvent } from "../core/rules/apply-event.ts";
import { isTerminal } from "../core/rules/state-machine.ts";
import type { Bench } from "./bench.ts";
import {
  type DelegatorCall,
  MODEL_ATTEMPTS,
  MODEL_GRACE,
  MODEL_LIMITS,
  MODEL_MOVE,
  ModelTask,
  type WorkerCall,
} from "./model.ts";
import { decide } from "./reviews.ts";
import { draftOf, limits } from "./tasks.ts";

/** The expected state: the tasks in the order of their creation, and all leases, including ended ones. */
export interface Model {
  readonly tasks: Map<string, ModelTask>;
  readonly leases: { taskId: string; epoch: bigint }[];
  created: number;
}

type Command = fc.AsyncCommand<Model, Bench>;

const OUTPUT = fromJson(ValueSchema, { words: 3 });

const MODEL_DRAFT = { limits: limits(MODEL_LIMITS), retry: { maxAttempts: MODEL_ATTEMPTS } };

const DELEGATOR_CALLS: DelegatorCall[] = [
  "cancel",
  "call off",
  "more time",
  "less time",
  "interrupt",
  "resume",
  "resume",
  "answer",
  "answer",
  "approve",
  "send back",
  "turn down",
];

const WORK: fc.Arbitrary<Command> = fc
  .tuple(
    fc.constantFrom<WorkerCall>(
      "start",
      "start",
      "progress",
      "progress",
      "complete",
      "fail",
      "break",
      "reject",
      "release",
      "heartbeat",
      "heartbeat",
      "checkpoint",
      "suspend",
      "ask",
    ),
    fc.nat(6),
  )
  .map(([call, back]) => command(`${call} ${back}`, (m, b) => callWorker(m, b, call, back)));

/** Generates one command of every kind: calls of delegators and workers, passing time, and restarts. */
export const COMMANDS: fc.Arbitrary<Command>[] = [
  fc
    .tuple(fc.boolean(), fc.boolean())
    .map(([again, reviewed]) =>
      command(`create${again ? " twice" : ""}${reviewed ? " reviewed" : ""}`, (m, b) =>
        createTask(m, b, again, reviewed),
      ),
    ),
  fc.nat(3).map((back) => command(`part of ${back}`, (m, b) => createPart(m, b, back))),
  fc.integer({ min: 1, max: 3 }).map((limit) => command(`claim ${limit}`, (m, b) => claimTasks(m, b, limit))),
  // Four of the entries are worker calls, which makes worker calls frequent in a run.
  ...[1, 2, 3, 4].map(() => WORK),
  fc
    .tuple(fc.constantFrom<DelegatorCall>(...DELEGATOR_CALLS), fc.nat(3))
    .map(([call, back]) => command(`${call} ${back}`, (m, b) => callDelegator(m, b, call, back))),
  fc
    .constantFrom(1, 1000, 4999, 5000, 9000, 21_000)
    .map((ms) => command(`pass ${ms}`, (m, b) => pass(m, b, ms))),
  fc.constantFrom(0, 6000).map((ms) => command(`reopen after ${ms}`, (m, b) => reopen(m, b, ms))),
];

function command(name: string, run: (model: Model, bench: Bench) => Promise<void>): Command {
  return { check: () => true, run, toString: () => name };
}

async function createTask(model: Model, bench: Bench, again: boolean, reviewed: boolean): Promise<void> {
  const requestId = `request ${++model.created}`;
  const draft = draftOf({ ...MODEL_DRAFT, description: requestId });
  const agent = bench.fakes.agents.get("worker");
  if (reviewed && agent !== undefined) agent.overseer = "bob";
  const { task } = await bench.tasks.createTask({ requestId, draft });
  if (agent !== undefined) delete agent.overseer;
  const taskId = task?.id ?? "";
  model.tasks.set(taskId, new ModelTask(bench.clock.now(), reviewed));
  if (again) expect((await bench.tasks.createTask({ requestId, draft })).task?.id).toBe(taskId);
}

async function createPart(model: Model, bench: Bench, back: number): Promise<void> {
  const [parentTaskId, parent] = pick(model, back);
  if (parentTaskId === undefined || parent === undefined) return;
  const requestId = `request ${++model.created}`;
  const draft = draftOf({ ...MODEL_DRAFT, description: requestId, parentTaskId });
  let taskId = "";
  const created = bench.tasks.createTask({ requestId, draft }).then(({ task }) => {
    taskId = task?.id ?? "";
  });
  expect(await outcomeOf(created), "part").toBe(parent.mayGrow);
  if (taskId !== "") model.tasks.set(taskId, new ModelTask(bench.clock.now(), false, parent));
}

/** Returns the task that was created `back` tasks before the newest one. */
function pick(model: Model, back: number): [string, ModelTask] | [] {
  return [...model.tasks].at(-1 - (back % Math.max(1, model.tasks.size))) ?? [];
}

async function claimTasks(model: Model, bench: Bench, limit: number): Promise<void> {
  const stream = { agentId: "worker", worker: "w", capacity: 1000, capabilityIds: [], holder: "s" };
  const assignments = await claim(
    bench.runtime.context.engine,
    stream,
    limit,
    bench.runtime.context.contextMemory,
  );
  const waiting = [...model.tasks].filter(([, task]) => task.status === TaskStatus.PENDING);
  const expected = waiting.slice(0, limit).map(([taskId]) => taskId);
  expect(assignments.map(({ lease }) => lease?.taskId)).toEqual(expected);
  for (const { lease } of assignments) {
    const task = model.tasks.get(lease?.taskId ?? "");
    task?.claim(bench.clock.now());
    expect(lease?.epoch).toBe(BigInt(task?.epoch ?? -1));
    if (lease !== undefined) model.leases.push({ taskId: lease.taskId, epoch: lease.epoch });
  }
}

async function callWorker(model: Model, bench: Bench, call: WorkerCall, back: number): Promise<void> {
  const lease = model.leases.at(-1 - (back % Math.max(1, model.leases.length)));
  const task = lease && model.tasks.get(lease.taskId);
  if (lease === undefined || task === undefined) return;
  const outcome = task.call(call, Number(lease.epoch), bench.clock.now());
  const failure = { reason: "BROKEN", message: "", retryable: call === "fail" };
  const { workers } = bench;
  const calls: Record<WorkerCall, () => Promise<unknown>> = {
    start: () => workers.startAssignment({ lease }),
    heartbeat: async () => {
      const { directive } = await workers.heartbeatAssignment({ lease });
      const goOn = task.interrupted ? WorkerDirective.SUSPEND : WorkerDirective.CONTINUE;
      const heldDirective = task.calledOff ? WorkerDirective.CANCEL : goOn;
      expect(directive).toBe(task.over ? WorkerDirective.STOP : heldDirective);
    },
    checkpoint: () => workers.saveCheckpoint({ lease, checkpoint: checkpointOf(task) }),
    suspend: () => workers.suspendAssignment({ lease }),
    ask: () => workers.requestInput({ lease, question: { prompt: "which?" } }),
    progress: () => workers.reportProgress({ lease, progress: { processed: task.log.length } }),
    complete: () => workers.completeAssignment({ lease, output: { full: OUTPUT } }),
    fail: () => workers.failAssignment({ lease, failure }),
    break: () => workers.failAssignment({ lease, failure }),
    reject: () => workers.rejectAssignment({ lease, failure }),
    release: () => workers.releaseAssignment({ lease }),
  };
  expect(await outcomeOf(calls[call]()), `${call} under ${lease.epoch} of ${task.epoch}`).toBe(outcome);
}

/** Returns the length of the task's log as a checkpoint. The log only grows, so the checkpoints of a task differ. */
function checkpointOf({ log }: ModelTask) {
  return fromJson(ValueSchema, log.length);
}

async function callDelegator(model: Model, bench: Bench, call: DelegatorCall, back: number): Promise<void> {
  const [taskId, task] = pick(model, back);
  if (taskId === undefined || task === undefined) return;
  const { tasks } = bench;
  const requestId = `command ${++model.created}`;
  const move = (ms: number) =>
    tasks.moveTaskDeadline({ taskId, requestId, expireTime: toTimestamp(task.mustEndMs + ms) });
  const calls: Record<DelegatorCall, () => Promise<unknown>> = {
    cancel: () => tasks.cancelTask({ taskId }),
    "call off": () => tasks.cancelTask({ taskId, grace: durationFromMs(MODEL_GRACE) }),
    "more time": () => move(MODEL_MOVE),
    "less time": () => move(-MODEL_MOVE),
    interrupt: () => tasks.suspendTask({ taskId }),
    resume: () => tasks.resumeTask({ taskId, requestId }),
    approve: () => decide(bench, taskId, ReviewVerdict.APPROVED),
    "send back": () => decide(bench, taskId, ReviewVerdict.CHANGES_REQUESTED),
    "turn down": () => decide(bench, taskId, ReviewVerdict.REJECTED),
    answer: () => tasks.provideInput({ taskId, requestId, input: OUTPUT }),
  };
  expect(await outcomeOf(calls[call]()), call).toBe(task.delegate(call, bench.clock.now()));
}

async function outcomeOf(call: Promise<unknown>): Promise<string> {
  return call.then(
    () => "ok",
    (error: unknown) => reasonName(reasonOf(error) ?? 0),
  );
}

async function pass(model: Model, bench: Bench, ms: number): Promise<void> {
  await bench.pass(ms);
  for (const task of model.tasks.values()) task.passTime(bench.clock.now());
  await checkAll(model, bench);
}

async function reopen(model: Model, bench: Bench, ms: number): Promise<void> {
  await bench.reopen(() => bench.clock.advance(ms));
  for (const task of model.tasks.values()) task.passTime(bench.clock.now());
  await checkAll(model, bench);
}

/** Checks the invariants of every task. They must hold after every command. */
export async function checkAll(model: Model, bench: Bench): Promise<void> {
  for (const [taskId, expected] of model.tasks) {
    const events = await bench.runtime.context.engine.events(taskId, 0n, 10_000);
    expect(events.map((event) => event.status)).toEqual(expected.log);
    expect(events.map((event) => event.sequence)).toEqual(events.map((_, index) => BigInt(index + 1)));
    expect(events.findIndex((event) => isTerminal(event.status))).toBe(
      expected.over ? events.length - 1 : -1,
    );
    const { task } = await bench.tasks.getTask({ taskId });
    if (task === undefined) throw new Error("no task");
    expect(task.status).toBe(expected.status);
    expect(task.attempt).toBe(expected.attempt);
    const { output: heldOutput, usage: _usage, ...told } = task;
    const shownTask =
      task.status === TaskStatus.IN_REVIEW ? told : { ...told, ...(heldOutput && { output: heldOutput }) };
    expect(toJson(TaskSchema, fold(task, events))).toEqual(toJson(TaskSchema, shownTask));
  }
}

/** Rebuilds a task from its log and from the fields that its creation fixes. */
function fold(task: Task, events: readonly TaskEvent[]): Task {
  const fixed = create(TaskSchema, {
    id: task.id,
    externalId: task.externalId,
    correlationId: task.correlationId,
    delegator: task.delegator,
    agentId: task.agentId,
    capabilityId: task.capabilityId,
    capabilityHash: task.capabilityHash,
    description: task.description,
    contractId: task.contractId,
    delegationId: task.delegationId,
    parentTaskId: task.parentTaskId,
    rootTaskId: task.rootTaskId,
    depth: task.depth,
    priority: task.priority,
    overseerId: task.overseerId,
  });
  const { input, budget, limits: inForce, retry, expireTime } = task;
  Object.assign(fixed, { input, budget, limits: inForce, retry, expireTime });
  return events.reduce(applyEvent, fixed);
}
