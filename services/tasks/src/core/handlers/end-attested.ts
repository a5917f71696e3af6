import { create } from "@bufbuild/protobuf";
import type { CallOptions, HandlerContext } from "@connectrpc/connect";
import { TaskCompletedSchema } from "@depute/contracts/depute/tasks/v1/task_event_pb";
import { type Task, TaskOutputSchema, TaskStatus } from "@depute/contracts/depute/tasks/v1/task_pb";
import {
  type AttestedResult,
  CompleteAssignmentRequestSchema,
  type EndAttestedTaskRequest,
} from "@depute/contracts/depute/tasks/v1/worker_service_pb";
import { DeputeError, ErrorReason, invalid } from "@depute/core";
import type { ReadTx } from "@depute/store";
import { noteUsage } from "../engine/spend.ts";
import { holdForReview } from "../operations/hold-for-review.ts";
import { advance, type Step } from "../rules/advance.ts";
import type { TaskRecord } from "../rules/record.ts";
import { exceeded } from "../rules/spend.ts";
import { isAttestable, stateConflict } from "../rules/state-machine.ts";
import { checkValue, MAX_VALUE_BYTES } from "../rules/values.ts";
import { tasksUnderDelegation } from "../store/delegation-rows.ts";
import { readHeldResult } from "../store/work-rows.ts";
import { type FullOutput, faultOfResult, requireOutputSchema } from "./complete.ts";
import { callOptions, type TasksContext } from "./context.ts";

/**
 * Ends the task under a delegation, by the outcome in an attestation of the delegatee. The verifier has already checked
 * the attestation. This function checks the task's rules before the transaction, and again in the transaction.
 *
 * @returns the task; undefined when no task runs under the delegation
 * @throws DeputeError CALLER_NOT_ALLOWED, INVALID_REQUEST, TASK_STATE_CONFLICT, OUTPUT_SCHEMA_VIOLATION,
 * VERIFICATION_FAILED, BUDGET_EXCEEDED, LIMIT_EXCEEDED, CHECK_TIMEOUT, DEPENDENCY_UNAVAILABLE, and the errors of
 * Authority.identify
 */
export async function endAttestedTask(
  tasks: TasksContext,
  request: EndAttestedTaskRequest,
  context: HandlerContext,
): Promise<Task | undefined> {
  const { engine, authority } = tasks;
  if (!(await authority.identify(context)).local) {
    throw new DeputeError(
      ErrorReason.CALLER_NOT_ALLOWED,
      "only the verifier may end a task by an attestation",
    );
  }
  const taskId = await theTaskUnder(tasks, request.revocationId);
  const attestedTask = taskId === undefined ? undefined : await engine.peek(taskId);
  if (attestedTask === undefined) return undefined;
  const isRepeated = (record: TaskRecord, tx: ReadTx) => isEndedBy(tx, record, request);
  if (await engine.store.read((tx) => isRepeated(attestedTask, tx))) return attestedTask.task;
  requireAttestable(attestedTask, request);
  const step = await stepOf(tasks, attestedTask, request, callOptions(tasks, context));
  const { task } = await engine.change(attestedTask.task.id, async (before, nowMs, tx) => {
    if (await isRepeated(before, tx)) return { record: before, events: [] };
    requireAttestable(before, request);
    const over = await noteUsage(tx, before.task, request.usage);
    if (over !== undefined) throw exceeded(over.unit, over.needed, over.allowed);
    return advance(before, await holdForReview(tx, before.task, step), nowMs);
  });
  return task;
}

/**
 * Returns the id of the only open task under a delegation. Without an open task, returns the id of an ended task whose
 * end the tokens service has not recorded; undefined for none.
 *
 * @throws DeputeError TASK_STATE_CONFLICT for several open tasks
 */
async function theTaskUnder({ engine }: TasksContext, revocationId: string): Promise<string | undefined> {
  const { open, ended } = await engine.store.read((tx) => tasksUnderDelegation(tx, revocationId));
  if (open.length > 1) {
    throw new DeputeError(
      ErrorReason.TASK_STATE_CONFLICT,
      "several tasks run under the delegation; end each of them with CompleteAssignment",
      { metadata: { task: open.join(",") } },
    );
  }
  return open[0] ?? ended[0];
}

/** Whether this attestation has already ended the task, or is the attestation of the task's held result. */
async function isEndedBy(
  tx: ReadTx,
  { task }: TaskRecord,
  { attestationId, outcome }: EndAttestedTaskRequest,
): Promise<boolean> {
  if (task.status === TaskStatus.IN_REVIEW) {
    const heldResult = await readHeldResult(tx, task.id);
    return outcome.case === "completed" && heldResult?.attestationId === attestationId;
  }
  return task.attestationId === attestationId;
}

async function stepOf(
  tasks: TasksContext,
  record: TaskRecord,
  { attestationId, outcome, usage }: EndAttestedTaskRequest,
  options: CallOptions,
): Promise<Step> {
  if (outcome.case === "failed") {
    return { by: "attestation", payload: { case: "failed", value: outcome.value }, attestationId };
  }
  const output = outputOf(outcome.value);
  const verification = outcome.value?.verification;
  await requireOutputSchema(tasks, record, output, options);
  const handedIn = create(CompleteAssignmentRequestSchema, {
    output,
    attestationId,
    ...(usage && { usage }),
  });
  const fault = await faultOfResult(tasks, record, handedIn, options);
  if (fault !== undefined) {
    throw new DeputeError(ErrorReason.VERIFICATION_FAILED, fault.message, {
      metadata: { task: record.task.id, failure: fault.reason },
    });
  }
  const value = create(TaskCompletedSchema, {
    output,
    attestationId,
    ...(usage && { usage }),
    ...(verification && { verification }),
  });
  return { by: "attestation", payload: { case: "completed", value } };
}

function outputOf(result: AttestedResult | undefined): FullOutput {
  const full = result?.output;
  if (full === undefined) throw invalid("completed.output", "is required");
  checkValue(full, "completed.output", MAX_VALUE_BYTES);
  return { ...create(TaskOutputSchema), full };
}

function requireAttestable({ task }: TaskRecord, { outcome }: EndAttestedTaskRequest): void {
  if (isAttestable(task.status)) return;
  const aim = outcome.case === "failed" ? TaskStatus.FAILED : TaskStatus.COMPLETED;
  throw stateConflict(task.id, task.status, aim);
}
