import { IdConflictPolicy, IdReusePolicy } from "@depute/contracts/depute/tasks/v1/task_service_pb";
import type { SharedWork } from "@depute/service";
import { admit, requireAllowed, resolveTarget } from "./creation/admission.ts";
import { createTaskWithin, draftDigest } from "./creation/create-task.ts";
import type { Eraser } from "./engine/eraser.ts";
import type { Purger } from "./engine/purger.ts";
import { watchTask } from "./engine/watch.ts";
import { wholeTask } from "./engine/whole-task.ts";
import { type TasksContext, watchOptions } from "./handlers/context.ts";
import { cancel } from "./operations/cancel.ts";
import { decided } from "./operations/decide.ts";
import { complete, failAttempt, hold, keepAlive, suspend } from "./operations/work.ts";
import type { Creation, TaskEngine } from "./port.ts";
import { cursorOf } from "./store/cursor-rows.ts";
import { freeExternalId, readEvents, readTask } from "./store/task-rows.ts";
import { openChildren } from "./store/tree-rows.ts";
import { readHeldResult } from "./store/work-rows.ts";
import { ownWorkers } from "./workers.ts";

/** Policies that refuse a used external id, in every state of the existing task. */
const EXCLUSIVE = { reusePolicy: IdReusePolicy.REJECT, conflictPolicy: IdConflictPolicy.REJECT } as const;
const SHARED = {
  reusePolicy: IdReusePolicy.UNSPECIFIED,
  conflictPolicy: IdConflictPolicy.UNSPECIFIED,
} as const;

/** Creates the task engine that modules of this service use. */
export function taskEngine(
  tasks: TasksContext,
  parts: {
    readonly purger: Pick<Purger, "onPurge">;
    readonly work: Pick<SharedWork, "lease">;
    readonly eraser: Pick<Eraser, "onErase">;
  },
): TaskEngine {
  const { engine, dependencies, clock } = tasks;
  const { purger, work, eraser } = parts;
  const { store } = engine;
  return {
    store,
    observe: (observer, events) => engine.observe(observer, events),
    checkResults: (check) => void tasks.resultChecks.push(check),
    onPurge: (listener) => purger.onPurge(listener),
    onErase: (listener) => eraser.onErase(listener),
    allowMissingContexts: (allows) => engine.allowMissingContexts(allows),
    provideReviews: (reviews) => tasks.reviews.provide(reviews),
    reviews: tasks.reviews,

    find: readTask,
    wholeTask: (tx, record) => wholeTask(tx, record),
    events: readEvents,
    hasOpenChildren: async (tx, taskId) => (await openChildren(tx, taskId)).length > 0,
    heldResult: readHeldResult,
    async *watch(taskId, afterSequence, context) {
      const record = await engine.find(taskId);
      if (record !== undefined) yield* watchTask(watchOptions(tasks), record, afterSequence, context);
    },

    requireAllowed: (delegator, agentId, description, options) =>
      requireAllowed(dependencies, delegator, agentId, description, options),
    async admit({ draft, delegator, target, work }, options) {
      const resolvedTarget = target ?? (await resolveTarget(dependencies, draft, delegator, options));
      return admit(dependencies, draft, resolvedTarget, delegator, clock.now(), options, work);
    },
    create: (tx, creation) => createWithin(tx, tasks, creation),
    delay: (tx, taskId, untilMs) => engine.availableFrom(tx, taskId, untilMs),
    cancel: (tx, taskId, reason, { ifOpen } = { ifOpen: false }) =>
      cancel(tx, engine, taskId, reason, ifOpen),

    hold: (tx, taskId, worker) => hold(tx, engine, taskId, worker),
    keepAlive: (holder, beforeMs) => keepAlive(engine, holder, beforeMs),
    complete: (tx, taskId, completion) => complete(tx, engine, taskId, completion),
    failAttempt: (tx, taskId, worker, failure) => failAttempt(tx, engine, taskId, worker, failure),
    suspend: (tx, taskId) => suspend(tx, engine, taskId),
    async decide(tx, taskId, decision, isOwn) {
      await engine.changeWithin(tx, taskId, (before, nowMs) =>
        decided(tx, tasks.reviews, before, decision, nowMs, isOwn),
      );
    },

    workers: ownWorkers(tasks),
    cursor: cursorOf,
    lease: (name) => work.lease(name),
  };
}

async function createWithin(
  tx: Parameters<TaskEngine["create"]>[0],
  { engine, treeLimits, contextMemory }: TasksContext,
  {
    draft,
    admitted,
    delegator,
    organization,
    requestId,
    viewer,
    sameAs,
    isExclusive = false,
    replaces,
  }: Creation,
) {
  if (replaces !== undefined) await freeExternalId(tx, replaces);
  const policies = isExclusive ? EXCLUSIVE : SHARED;
  const request = { delegator, requestId, draft, digest: draftDigest(sameAs ?? draft), policies };
  const rights = { caller: viewer, organization, treeLimits, contextMemory };
  return createTaskWithin(tx, engine, request, admitted, rights);
}
