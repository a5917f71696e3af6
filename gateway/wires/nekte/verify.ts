import { create, type JsonValue } from "@bufbuild/protobuf";
import { AttestationSchema } from "@depute/contracts/delegateos/v0/attestation_pb";
import { type Task, type TaskOutput, TaskStatus } from "@depute/contracts/depute/tasks/v1/task_pb";
import {
  type TokenBudget,
  type VerifyRequest,
  type VerifyResult,
  VerifyResultSchema,
  VerifySampleSchema,
  VerifySourceSchema,
} from "@depute/contracts/nekte/v1/nekte_pb";
import { DEFAULT_RESULT_BUDGET, DeputeError, ErrorReason, estimateTokens } from "@depute/core";
import { encode } from "@depute/wire";
import type { Clients } from "../../edge/clients.ts";
import { renameFields, WireFault } from "../../edge/fault.ts";
import type { WireCall } from "../../edge/wire-call.ts";
import { resolveLevel, toPlain } from "./budget.ts";
import { toBytes } from "./events.ts";
import { stateOfTask } from "./states.ts";

/** The result of a verification, and the checks that led to it. */
export interface Verified {
  readonly checks: readonly string[];
  readonly result: VerifyResult;
}

/**
 * nekte.verify (NEKTE 8): checks the result of a task. The caller names the task by the caller's own id. Only the
 * comparison with the caller's hash can pass or fail; all other checks only return data.
 *
 * @throws DeputeError TASK_NOT_FOUND, TASK_STATE_CONFLICT if the task has no stored result, BUDGET_EXCEEDED,
 * INVALID_REQUEST, ATTESTATION_NOT_FOUND; WireFault VERIFICATION_FAILED
 */
export async function verify(
  { tasks, results, attestations }: Pick<Clients, "tasks" | "results" | "attestations">,
  agentId: string,
  { taskId, checks: requestedChecks, budget, resultHash, verificationType }: VerifyRequest,
  call: WireCall,
): Promise<Verified> {
  const { task } = await tasks.getTask({ externalId: taskId, agentId }, call.asCaller);
  if (task === undefined) throw new Error("GetTask answered without a task");
  requireResult(task, taskId);
  const wantsHash = resultHash !== undefined || verificationType !== undefined;
  const checks = [...new Set([...(wantsHash ? ["hash"] : []), ...requestedChecks])];
  const result = create(VerifyResultSchema, { taskId });
  if (checks.includes("hash")) {
    const { hash, matches } = await compare(results, task.output, resultHash ?? "", call);
    if (resultHash !== undefined && !matches) throw failed(taskId, hash);
    result.hash = hash;
    if (resultHash !== undefined) Object.assign(result, { status: "verified", hashValid: true });
  }
  if (checks.includes("sample")) result.sample = sampleOf(task, budget);
  if (checks.includes("source")) result.source = sourceOf(task);
  if (checks.includes("attestation"))
    result.attestation = await attestationOf(attestations, task, taskId, call);
  return { checks, result };
}

/**
 * Throws unless the task has a result that is still stored.
 *
 * @throws DeputeError TASK_STATE_CONFLICT
 */
function requireResult(task: Task, taskId: string): void {
  if (task.status === TaskStatus.COMPLETED && task.purgeTime === undefined) return;
  const isPurged = task.status === TaskStatus.COMPLETED;
  const problem = isPurged ? "the task's result is no longer stored" : "the task has no result";
  throw new DeputeError(ErrorReason.TASK_STATE_CONFLICT, problem, {
    metadata: { task: taskId, from: stateOfTask(task), to: "completed" },
  });
}

/**
 * Hashes the result, and compares the hash with the caller's. Depute's choice: the caller's hash may be that of any
 * form of the result, because the caller has only the forms that its budget allowed.
 */
async function compare(
  results: Clients["results"],
  output: TaskOutput | undefined,
  resultHash: string,
  call: WireCall,
): Promise<{ hash: string; matches: boolean }> {
  const [full, ...shorter] = formsOf(output);
  const check = (form: JsonValue) =>
    results
      .checkResultHash({ resultJson: JSON.stringify(form), resultHash }, call.aside)
      .catch((thrown: unknown) => {
        throw renameFields(thrown, { result_hash: "/result_hash" });
      });
  const outcome = await check(full);
  if (outcome.matches || resultHash === "") return outcome;
  for (const form of shorter) {
    const other = await check(form);
    if (other.matches) return other;
  }
  return outcome;
}

function formsOf(output: TaskOutput | undefined): [JsonValue, ...JsonValue[]] {
  const { compact, minimal } = output ?? {};
  return [
    toPlain(output?.full),
    ...(compact === undefined ? [] : [toPlain(compact)]),
    ...(minimal === undefined ? [] : [minimal]),
  ];
}

/** Returns the fullest form of the result that the budget allows, and the input if it fits too. */
function sampleOf({ input, output }: Task, budget: TokenBudget | undefined) {
  const { out, tokens } = resolveLevel(output, budget);
  const remainingTokens = (budget?.maxTokens ?? DEFAULT_RESULT_BUDGET.maxTokens) - tokens;
  const inputValue = toPlain(input);
  return create(VerifySampleSchema, {
    outputSample: toBytes(out),
    ...(input === undefined || estimateTokens(inputValue) > remainingTokens
      ? {}
      : { inputSample: toBytes(inputValue) }),
  });
}

/**
 * Returns the known facts about the origin of a result: the agent, and the number of processed items. The platform
 * does not know the number of failed items.
 */
function sourceOf({ agentId, progress }: Task) {
  return create(VerifySourceSchema, {
    model: agentId,
    ...(progress === undefined ? {} : { processed: progress.processed }),
  });
}

/**
 * Returns the signed attestation of the worker's result as a document. (DelegateOS 7)
 *
 * @throws DeputeError ATTESTATION_NOT_FOUND if the result has no attestation
 */
async function attestationOf(
  attestations: Clients["attestations"],
  { attestationId }: Task,
  taskId: string,
  call: WireCall,
): Promise<Uint8Array<ArrayBuffer>> {
  if (attestationId === "") {
    throw new DeputeError(
      ErrorReason.ATTESTATION_NOT_FOUND,
      "the worker sent no attestation with the result: request hash, sample or source",
      { metadata: { attestation: "", task: taskId } },
    );
  }
  const { attestation } = await attestations.getAttestation({ attestationId }, call.aside);
  if (attestation === undefined) throw new Error("GetAttestation answered without an attestation");
  return toBytes(encode(AttestationSchema, attestation));
}

function failed(taskId: string, hash: string): WireFault {
  const detail = "the hash differs from the hash of the task's result";
  const metadata = { task: taskId, checks: "hash" };
  const refusal = new DeputeError(ErrorReason.VERIFICATION_FAILED, detail, { metadata });
  return new WireFault(refusal, {
    reason: "VERIFICATION_FAILED",
    detail,
    metadata,
    task_id: taskId,
    checks: ["hash"],
    hash,
    hash_valid: false,
  });
}
