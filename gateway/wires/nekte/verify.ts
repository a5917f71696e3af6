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
import type { Clients } from "../../src/clients.ts";
import { renameFields, WireFault } from "../../src/fault.ts";
import type { WireCall } from "../../src/wire-call.ts";
import { resolveLevel, toPlain } from "./budget.ts";
import { toBytes } from "./events.ts";
import { stateOfTask } from "./states.ts";

/** What was checked, and what came of it. */
export interface Verified {
  readonly checks: readonly string[];
  readonly result: VerifyResult;
}

/**
 * nekte.verify (NEKTE 8): checks the result of a task that the caller knows by its own id. Only a hash that the caller
 * brings can pass or fail; the other checks show what there is to judge by.
 *
 * @throws DeputeError TASK_NOT_FOUND, TASK_STATE_CONFLICT when there is no result, BUDGET_EXCEEDED, INVALID_REQUEST,
 * ATTESTATION_NOT_FOUND;
 * WireFault VERIFICATION_FAILED
 */
export async function verify(
  { tasks, results, attestations }: Pick<Clients, "tasks" | "results" | "attestations">,
  agentId: string,
  { taskId, checks: asked, budget, resultHash, verificationType }: VerifyRequest,
  call: WireCall,
): Promise<Verified> {
  const name = { case: "externalId", value: taskId } as const;
  const { task } = await tasks.getTask({ name, agentId }, call.asCaller);
  if (task === undefined) throw new Error("a task was found and not told of");
  requireResult(task, taskId);
  const wantsHash = resultHash !== undefined || verificationType !== undefined;
  const checks = [...new Set([...(wantsHash ? ["hash"] : []), ...asked])];
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

/** @throws DeputeError TASK_STATE_CONFLICT */
function requireResult(task: Task, taskId: string): void {
  if (task.status === TaskStatus.COMPLETED && task.purgeTime === undefined) return;
  const isPurged = task.status === TaskStatus.COMPLETED;
  const problem = isPurged ? "the task's result is no longer kept" : "the task has no result";
  throw new DeputeError(ErrorReason.TASK_STATE_CONFLICT, problem, {
    metadata: { task: taskId, from: stateOfTask(task), to: "completed" },
  });
}

/**
 * The hash of the result, and whether the caller's fits it. Depute's choice: the hash of any form that the worker gave
 * fits, because a caller has the forms that its budget allowed.
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

/** The result as far as the budget allows, and the input where there is one and room for it. */
function sampleOf({ input, output }: Task, budget: TokenBudget | undefined) {
  const { out, tokens } = resolveLevel(output, budget);
  const left = (budget?.maxTokens ?? DEFAULT_RESULT_BUDGET.maxTokens) - tokens;
  const given = toPlain(input);
  return create(VerifySampleSchema, {
    outputSample: toBytes(out),
    ...(input === undefined || estimateTokens(given) > left ? {} : { inputSample: toBytes(given) }),
  });
}

/** What the platform knows of a result's making: who did it, and how much. How many items failed nobody tells. */
function sourceOf({ agentId, progress }: Task) {
  return create(VerifySourceSchema, {
    model: agentId,
    ...(progress === undefined ? {} : { processed: progress.processed }),
  });
}

/**
 * The signed attestation that the worker gave with its result, as its document. (DelegateOS 7)
 *
 * @throws DeputeError ATTESTATION_NOT_FOUND when it gave none
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
      "the worker gave no attestation with the result: ask for hash, sample or source",
      { metadata: { attestation: "", task: taskId } },
    );
  }
  const { attestation } = await attestations.getAttestation({ id: attestationId }, call.aside);
  if (attestation === undefined) throw new Error("an attestation was found and not told of");
  return toBytes(encode(AttestationSchema, attestation));
}

function failed(taskId: string, hash: string): WireFault {
  const detail = "the hash is not that of the task's result";
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
