import { create, toJsonString } from "@bufbuild/protobuf";
import { type Value, ValueSchema } from "@bufbuild/protobuf/wkt";
import type { CallOptions, HandlerContext } from "@connectrpc/connect";
import {
  VerificationMethod,
  VerificationMethodSchema,
} from "@depute/contracts/delegateos/v0/verification_pb";
import { TaskCompletedSchema } from "@depute/contracts/depute/tasks/v1/task_event_pb";
import {
  type Task,
  type TaskFailure,
  type TaskOutput,
  TaskStatus,
  type TaskVerification,
  TaskVerificationSchema,
} from "@depute/contracts/depute/tasks/v1/task_pb";
import type { CompleteAssignmentRequest } from "@depute/contracts/depute/tasks/v1/worker_service_pb";
import { DeputeError, ErrorReason, invalid } from "@depute/core";
import { reasonOf } from "@depute/service";
import { schemaViolations } from "../creation/schema-violations.ts";
import type { Decide } from "../engine/engine.ts";
import { noteUsage } from "../engine/spend.ts";
import { holdForReview } from "../operations/hold-for-review.ts";
import { advance, type Step } from "../rules/advance.ts";
import { failureOf, overspent } from "../rules/apply-event.ts";
import { isSettledBy, requireLease } from "../rules/lease.ts";
import type { TaskRecord } from "../rules/record.ts";
import { deliversUnstarted, stateConflict } from "../rules/state-machine.ts";
import { checkValue, MAX_VALUE_BYTES } from "../rules/values.ts";
import { requireDelegate } from "../rules/visibility.ts";
import { readInput, readOutputSchema } from "../store/task-rows.ts";
import { requireOwnAttestation } from "./attestation-check.ts";
import { type Caller, callOptions, leaseOf, peekVisible, type TasksContext } from "./context.ts";
import { readWhole } from "./task-service.ts";
import { requireSoundToken } from "./token-check.ts";

/** An output that contains its full form. */
export type FullOutput = TaskOutput & { full: Value };

/** The failure reason of a task whose result did not pass the check of the task's contract. */
const VERIFICATION_FAILED = "VERIFICATION_FAILED";

/**
 * Completes a task. First calls other services. Then checks the lease again in the transaction, because the lease may
 * have expired during these calls.
 *
 * @returns the task: completed; in review if the delegate has an overseer; or failed if the result does not pass a
 * check, or if the usage exceeds the budget
 */
export async function completeAssignment(
  tasks: TasksContext,
  caller: Caller,
  request: CompleteAssignmentRequest,
  context: HandlerContext,
  answer: "whole" | "without input",
): Promise<Task> {
  const lease = leaseOf(request);
  const output = checkedOutput(request.output);
  const visibleTask = await peekVisible(tasks, caller, lease.taskId);
  requireDelegate(caller, visibleTask);
  if (!isSettledBy(visibleTask, lease, "complete")) {
    requireLease(visibleTask, lease);
    const { status } = visibleTask.task;
    const isUnstarted = status === TaskStatus.ACCEPTED && deliversUnstarted(visibleTask.task);
    if (status !== TaskStatus.RUNNING && !isUnstarted) {
      throw stateConflict(lease.taskId, status, TaskStatus.COMPLETED);
    }
    const options = callOptions(tasks, context);
    await requireOutputSchema(tasks, visibleTask, output, options);
    await requireSoundToken(tasks, visibleTask, lease, options);
    await requireOwnAttestation(tasks, visibleTask, request.attestationId, output.full, options);
    const fault = await faultOfResult(tasks, visibleTask, request, options);
    const verification =
      fault === undefined ? await verify(tasks, visibleTask.task, output, options) : undefined;
    const step =
      fault === undefined
        ? completionStep(visibleTask.task, request, output, verification)
        : ({ by: "worker", settles: "complete", payload: { case: "failed", value: fault } } as const);
    let input: Value | undefined;
    let isRepeated = false;
    const decide: Decide = async (before, nowMs, tx) => {
      isRepeated = isSettledBy(before, lease, "complete");
      if (isRepeated) return { record: before, events: [] };
      requireLease(before, lease);
      if (answer === "whole") input = (await readInput(tx, lease.taskId)).input;
      const over = await noteUsage(tx, before.task, request.usage);
      if (over !== undefined) return advance(before, { ...step, payload: overspent(over) }, nowMs);
      return advance(before, await holdForReview(tx, before.task, step), nowMs);
    };
    const { task } = await tasks.engine.change(lease.taskId, decide, { isRepeatable: true });
    if (!isRepeated) return input === undefined ? task : { ...task, input };
  }
  return readWhole(tasks, lease.taskId);
}

function checkedOutput(output: TaskOutput | undefined): FullOutput {
  const full = output?.full;
  if (output === undefined || full === undefined) throw invalid("output.full", "is required");
  checkValue(full, "output.full", MAX_VALUE_BYTES);
  if (output.compact !== undefined) checkValue(output.compact, "output.compact", MAX_VALUE_BYTES);
  return { ...output, full };
}

/** @throws DeputeError OUTPUT_SCHEMA_VIOLATION, CHECK_TIMEOUT, DEPENDENCY_UNAVAILABLE */
export async function requireOutputSchema(
  { engine, dependencies }: TasksContext,
  { outputSchema }: TaskRecord,
  { full }: FullOutput,
  options: CallOptions,
): Promise<void> {
  if (outputSchema === "") return;
  const schema = await engine.store.read((tx) => readOutputSchema(tx, outputSchema));
  if (schema === undefined) throw new Error(`the output schema ${outputSchema} does not exist`);
  const violations = await schemaViolations(dependencies, schema, full, "output.full", options);
  if (violations.length === 0) return;
  throw new DeputeError(
    ErrorReason.OUTPUT_SCHEMA_VIOLATION,
    "the output does not fit the capability's schema",
    { violations },
  );
}

/** Returns the outcome of the contract's check; undefined without a contract. */
async function verify(
  { dependencies }: TasksContext,
  { contractId }: Task,
  { full }: FullOutput,
  options: CallOptions,
): Promise<TaskVerification | undefined> {
  if (contractId === "") return undefined;
  try {
    const { method, result, reviewId } = await dependencies.verification.checkOutput(
      { contractId, outputJson: toJsonString(ValueSchema, full) },
      options,
    );
    if (reviewId !== "") {
      throw new DeputeError(
        ErrorReason.REVIEW_PENDING,
        "a person must first decide the review of the output: try again after the decision",
        {
          metadata: { review: reviewId },
        },
      );
    }
    return create(TaskVerificationSchema, {
      method: methodName(method),
      passed: result?.passed === true,
      details: result?.details ?? "",
      ...(result?.score === undefined ? {} : { score: result.score }),
    });
  } catch (error) {
    // A check that timed out counts as failed.
    if (reasonOf(error) !== ErrorReason.CHECK_TIMEOUT) throw error;
    const { contract } = await dependencies.contracts.getContract({ contractId }, options);
    const method = contract?.verification?.method ?? VerificationMethod.UNSPECIFIED;
    return create(TaskVerificationSchema, {
      method: methodName(method),
      details: "the check was stopped at its time limit",
    });
  }
}

/** Returns the failure of the first failed check of the modules; undefined if the result passes all checks. */
export async function faultOfResult(
  { resultChecks }: TasksContext,
  record: TaskRecord,
  request: CompleteAssignmentRequest,
  options: CallOptions,
): Promise<TaskFailure | undefined> {
  for (const check of resultChecks) {
    const fault = await check(record, request, options);
    if (fault !== undefined) return fault;
  }
  return undefined;
}

function completionStep(
  { executionRequestId }: Task,
  { usage, attestationId, delivery }: CompleteAssignmentRequest,
  output: TaskOutput,
  verification: TaskVerification | undefined,
): Step {
  const common = { by: "worker", settles: "complete" } as const;
  if (verification?.passed === false) {
    const value = failureOf(
      VERIFICATION_FAILED,
      verification.details || "the result did not pass its contract",
    );
    return { ...common, payload: { case: "failed", value }, verification };
  }
  const value = create(TaskCompletedSchema, {
    output,
    attestationId,
    ...(usage && { usage }),
    ...(verification && { verification }),
    ...(delivery && executionRequestId !== "" && { delivery }),
  });
  return { ...common, payload: { case: "completed", value } };
}

/** Returns a method in DelegateOS's spelling, such as `deterministic_check`. */
function methodName(method: VerificationMethod): string {
  const name = VerificationMethodSchema.value[method]?.name ?? "";
  return name.replace("VERIFICATION_METHOD_", "").toLowerCase();
}
