import { IdConflictPolicy, IdReusePolicy } from "@depute/contracts/depute/tasks/v1/task_service_pb";
import { admit, resolveTarget } from "./creation/admission.ts";
import { createTaskWithin } from "./creation/create-task.ts";
import { requireAllowed } from "./creation/delegation-policy.ts";
import { draftDigest } from "./engine/digest.ts";
import type { Purger } from "./engine/purger.ts";
import { watchTask } from "./engine/watch.ts";
import { type TasksContext, watchOptions } from "./handlers/context.ts";
import { cancel } from "./operations/cancel.ts";
import { decided } from "./operations/decide.ts";
import { complete, failAttempt, hold, keepAlive, suspend } from "./operations/work.ts";
import type { Creation, TaskEngine } from "./port.ts";
import { cursorOf } from "./store/cursor-rows.ts";
import { freeExternalId, readTask } from "./store/task-rows.ts";
import { openChildren } from "./store/tree-rows.ts";
import { readHeldResult } from "./store/work-rows.ts";
import { ownWorkers } from "./workers.ts";

/** An external id that is taken is refused, whatever the task with it is. */
const EXCLUSIVE = { reusePolicy: IdReusePolicy.REJECT, conflictPolicy: IdConflictPolicy.REJECT } as const;
const SHARED = {
  reusePolicy: IdReusePolicy.UNSPECIFIED,
  conflictPolicy: IdConflictPolicy.UNSPECIFIED,
} as const;

/** The port that modules get. */
export function taskEngine(tasks: TasksContext, purger: Pick<Purger, "onPurge">): TaskEngine {
  const { engine, dependencies, clock } = tasks;
  const { store } = engine;
  return {
    store,
    observe: (observer) => engine.observe(observer),
    checkResults: (check) => void tasks.resultChecks.push(check),
    onPurge: (listener) => purger.onPurge(listener),
    allowMissingContexts: (allows) => engine.allowMissingContexts(allows),
    provideReviews: (reviews) => tasks.reviews.provide(reviews),
    reviews: tasks.reviews,

    find: readTask,
    hasOpenChildren: async (tx, taskId) => (await openChildren(tx, taskId)).length > 0,
    heldResult: readHeldResult,
    async *watch(taskId, afterSequence, context) {
      const record = await engine.find(taskId);
      if (record !== undefined) yield* watchTask(watchOptions(tasks), record, afterSequence, context);
    },

    requireAllowed: (delegator, agentId, description, options) =>
      requireAllowed(dependencies, delegator, agentId, description, options),
    async admit({ draft, delegator, target, work }, options) {
      const found = target ?? (await resolveTarget(dependencies, draft, delegator, options));
      return admit(dependencies, draft, found, delegator, clock.now(), options, work);
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
  };
}

async function createWithin(
  tx: Parameters<TaskEngine["create"]>[0],
  { engine, treeLimits, contextMemory }: TasksContext,
  { draft, admitted, delegator, requestId, viewer, sameAs, isExclusive = false, replaces }: Creation,
) {
  if (replaces !== undefined) await freeExternalId(tx, replaces);
  const policies = isExclusive ? EXCLUSIVE : SHARED;
  const request = { delegator, requestId, draft, digest: draftDigest(sameAs ?? draft), policies };
  return createTaskWithin(tx, engine, request, admitted, { caller: viewer, treeLimits, contextMemory });
}
