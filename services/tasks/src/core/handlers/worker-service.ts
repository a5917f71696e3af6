import { create } from "@bufbuild/protobuf";
import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import { TaskPartialSchema, TaskStartedSchema } from "@depute/contracts/depute/tasks/v1/task_event_pb";
import { type Task, type TaskFailure, TaskStatus } from "@depute/contracts/depute/tasks/v1/task_pb";
import type { Lease, WorkerService } from "@depute/contracts/depute/tasks/v1/worker_service_pb";
import { invalid, toTimestamp } from "@depute/core";
import type { WriteTx } from "@depute/store";
import { noteUsage } from "../engine/spend.ts";
import { advance, extendLease, type Step } from "../rules/advance.ts";
import { overspent } from "../rules/apply-event.ts";
import { isSettledBy, requireLease } from "../rules/lease.ts";
import type { Settlement, TaskRecord } from "../rules/record.ts";
import { afterFailedAttempt, afterRelease } from "../rules/retry.ts";
import { checkValue, MAX_PARTIAL_BYTES } from "../rules/values.ts";
import { requireDelegate } from "../rules/visibility.ts";
import { requireWorkerOf, watchAssignments } from "./assignments.ts";
import { completeAssignment } from "./complete.ts";
import { completeAssignments } from "./complete-batch.ts";
import { callerOf, callOptions, leaseOf, peekVisible, type TasksContext } from "./context.ts";
import { getDelegateLimits, setDelegateLimits } from "./delegate-limits.ts";
import { endAttestedTask } from "./end-attested.ts";
import { heartbeat } from "./heartbeat.ts";
import { acceptAssignment, requestInput, saveCheckpoint, suspendAssignment } from "./interruptions.ts";
import { report } from "./report.ts";
import { takeAssignments } from "./take.ts";
import { wholeOf } from "./task-service.ts";
import { requireSoundToken } from "./token-check.ts";

/** Handles the calls of WorkerService, which workers make. */
export function workerService(tasks: TasksContext): ServiceImpl<typeof WorkerService> {
  const { engine } = tasks;
  return {
    watchAssignments: (request, context) => watchAssignments(tasks, request, context),

    async endAssignments({ agentId, streamId }, context) {
      await requireWorkerOf(tasks, agentId, context);
      tasks.dispatcher.end(agentId, streamId);
      return {};
    },

    async takeAssignments(request, context) {
      return { assignments: await takeAssignments(tasks, request, context) };
    },

    async startAssignment(request, context) {
      const lease = leaseOf(request);
      const caller = await callerOf(tasks, context);
      const visibleTask = await peekVisible(tasks, caller, lease.taskId);
      requireDelegate(caller, visibleTask);
      requireLease(visibleTask, lease);
      await requireSoundToken(tasks, visibleTask, lease, callOptions(tasks, context));
      const record = await engine.change(lease.taskId, (before, nowMs) => {
        requireLease(before, lease);
        const { status } = before.task;
        if (status === TaskStatus.RUNNING || status === TaskStatus.INPUT_REQUIRED) {
          return { record: extendLease(before, nowMs), events: [] };
        }
        const value = create(TaskStartedSchema, { attempt: before.task.attempt });
        const { record, events } = advance(
          before,
          { payload: { case: "started", value }, by: "worker" },
          nowMs,
        );
        return { record: extendLease(record, nowMs), events };
      });
      return leaseExpiry(record);
    },

    async acceptAssignment(request, context) {
      return leaseExpiry(await acceptAssignment(tasks, leaseOf(request), request, context));
    },

    async setDelegateLimits({ agentId, limits }, context) {
      if (limits === undefined) throw invalid("limits", "is required");
      await setDelegateLimits(tasks, agentId, limits, context);
      return { limits };
    },

    getDelegateLimits: ({ agentId }, context) => getDelegateLimits(tasks, agentId, context),

    heartbeatAssignment: (request, context) => heartbeat(tasks, leaseOf(request), request, context),

    saveCheckpoint: (request, context) => saveCheckpoint(tasks, leaseOf(request), request, context),

    async suspendAssignment(request, context) {
      return { task: await suspendAssignment(tasks, leaseOf(request), request, context) };
    },

    async requestInput(request, context) {
      return leaseExpiry(await requestInput(tasks, leaseOf(request), request, context));
    },

    async reportProgress(request, context) {
      const { progress: value, requestId } = request;
      if (value === undefined) throw invalid("progress", "is required");
      const caller = await callerOf(tasks, context);
      const payload = { case: "progress", value } as const;
      return report(tasks, caller, { lease: leaseOf(request), requestId, payload });
    },

    async reportPartial(request, context) {
      const { output, requestId, resolvedLevel } = request;
      if (output === undefined) throw invalid("output", "is required");
      checkValue(output, "output", MAX_PARTIAL_BYTES);
      const caller = await callerOf(tasks, context);
      const value = create(TaskPartialSchema, { output, resolvedLevel: resolvedLevel || "compact" });
      const payload = { case: "partial", value } as const;
      return report(tasks, caller, { lease: leaseOf(request), requestId, payload });
    },

    async completeAssignment(request, context) {
      const caller = await callerOf(tasks, context);
      return { task: await completeAssignment(tasks, caller, request, context, "whole") };
    },

    async batchCompleteAssignments({ requests }, context) {
      return { outcomes: await completeAssignments(tasks, requests, context) };
    },

    async endAttestedTask(request, context) {
      const task = await endAttestedTask(tasks, request, context);
      return task === undefined ? {} : { task };
    },

    async failAssignment(request, context) {
      const failure = failureOfRequest(request);
      const { random } = engine;
      const step = async (task: Task, nowMs: number, tx: WriteTx): Promise<Step> => {
        const over = await noteUsage(tx, task, request.usage);
        const payload =
          over === undefined ? afterFailedAttempt(task, failure, { nowMs, random }) : overspent(over);
        return { payload, by: "worker" };
      };
      return { task: await settle(tasks, leaseOf(request), "fail", step, context) };
    },

    async rejectAssignment(request, context) {
      const value = failureOfRequest(request);
      const step = (): Step => ({ payload: { case: "rejected", value }, by: "worker" });
      return { task: await settle(tasks, leaseOf(request), "reject", step, context) };
    },

    async releaseAssignment(request, context) {
      const step = (task: Task): Step => ({ payload: afterRelease(task), by: "worker" });
      return { task: await settle(tasks, leaseOf(request), "release", step, context) };
    },
  };
}

/** Applies a step that ends the lease at the worker's request. A repeated call gets the same response. */
async function settle(
  tasks: TasksContext,
  lease: Lease,
  by: Settlement,
  step: (task: Task, nowMs: number, tx: WriteTx) => Promise<Step> | Step,
  context: HandlerContext,
): Promise<Task> {
  const caller = await callerOf(tasks, context);
  const record = await tasks.engine.change(lease.taskId, async (before, nowMs, tx) => {
    requireDelegate(caller, before);
    if (isSettledBy(before, lease, by)) return { record: before, events: [] };
    requireLease(before, lease);
    return advance(before, { ...(await step(before.task, nowMs, tx)), settles: by }, nowMs);
  });
  return wholeOf(tasks, record);
}

function failureOfRequest({ failure }: { failure?: TaskFailure | undefined }): TaskFailure {
  if (failure === undefined) throw invalid("failure", "is required");
  return failure;
}

function leaseExpiry({ hold }: TaskRecord) {
  return hold === undefined ? {} : { leaseExpireTime: toTimestamp(hold.leaseExpireMs) };
}
