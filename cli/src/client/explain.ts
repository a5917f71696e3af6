import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { enumName } from "../print/cells.ts";
import { oneLine } from "../print/safe-text.ts";
import type { Invocation, ServiceName } from "../table/command.ts";
import { type Connection, connected } from "./connection.ts";
import { type Form, isDocument, printDocument, write } from "./output.ts";

/**
 * The facts about a task, as its services return them. A member is absent if the fact does not exist, or if the caller
 * may not see it.
 */
interface Findings {
  readonly task: JsonObject;
  /** The task's ancestors, and the task itself. */
  readonly lineage: readonly JsonObject[];
  /** The recorded delegations of the task's token, the root's first. */
  readonly delegations: readonly JsonObject[] | undefined;
  readonly contract: JsonObject | undefined;
}

/** `depute explain TASK`. */
export async function explain(invocation: Invocation): Promise<void> {
  const taskId = String(invocation.values.TASK);
  const form = invocation.values.output as Form;
  const findings = await connected(invocation, (connection) => read(connection, taskId));
  if (isDocument(form)) await printDocument(form, presentation(findings));
  else write(explanation(findings).map(oneLine).join("\n"));
}

async function read(connection: Connection, taskId: string): Promise<Findings> {
  const task = (await connection.call("tasks", "getTask", { taskId })).task as JsonObject;
  const answerOf = (service: ServiceName, method: string, request: JsonObject) =>
    ifVisible(connection.call(service, method, request));
  const [lineage, delegations, contract] = await Promise.all([
    answerOf("tasks", "getLineage", { taskId }),
    task.delegationId === undefined
      ? undefined
      : answerOf("delegations", "getDelegationChain", { delegationId: task.delegationId }),
    task.contractId === undefined
      ? undefined
      : answerOf("contracts", "getContract", { contractId: task.contractId }),
  ]);
  return {
    task,
    lineage: (lineage?.tasks ?? []) as JsonObject[],
    delegations: delegations?.delegations as JsonObject[] | undefined,
    contract: contract?.contract as JsonObject | undefined,
  };
}

async function ifVisible(call: Promise<JsonObject>): Promise<JsonObject | undefined> {
  try {
    return await call;
  } catch (error) {
    const { code } = ConnectError.from(error);
    if (code === Code.NotFound || code === Code.PermissionDenied) return undefined;
    throw error;
  }
}

function presentation(findings: Findings): JsonObject {
  return Object.fromEntries(Object.entries(findings).filter(([, value]) => value !== undefined)) as Record<
    string,
    JsonValue
  >;
}

/** The lines of an explanation: delegator, ancestors, authority, contract, outcome. */
export function explanation({ task, lineage, delegations, contract }: Findings): string[] {
  const status = enumName(String(task.status), "TASK_STATUS_");
  const above = lineage.filter(({ id }) => id !== task.id);
  return [
    `Task ${task.id} is ${status}.`,
    `Delegator: ${task.delegator ?? ""}, at ${task.createTime ?? ""}.`,
    `Delegate: the agent ${task.agentId ?? "(none yet)"}${task.capabilityId ? `, capability ${task.capabilityId}` : ""}.`,
    ...above.map(({ id, delegator, agentId }) => `Above it: task ${id} for ${agentId}, from ${delegator}.`),
    ...authorityLines(task, delegations),
    ...contractLines(task, contract),
    ...outcomeLines(task),
  ];
}

function authorityLines(task: JsonObject, delegations: readonly JsonObject[] | undefined): string[] {
  if (task.delegationId === undefined) {
    return ["Authority: no token; the platform knew the delegator by its other credentials."];
  }
  if (delegations === undefined) {
    return [`Authority: the delegation ${task.delegationId}, whose chain you do not see.`];
  }
  return delegations.map(({ id, delegator, delegatee, status, expireTime }, index) => {
    const state = enumName(String(status), "DELEGATION_STATUS_");
    return `Authority, block ${index}: ${delegator} to ${delegatee}; ${state}, until ${expireTime} (${id}).`;
  });
}

function contractLines(task: JsonObject, contract: JsonObject | undefined): string[] {
  if (task.contractId === undefined) return [];
  const { title = "" } = (contract?.task ?? {}) as { title?: string };
  return [`Contract: ${task.contractId}${title === "" ? "" : `, ${title}`}.`];
}

function outcomeLines(task: JsonObject): string[] {
  const { failure, verification, usage, cancellation } = task as Record<string, JsonObject | undefined>;
  const lines = [`Attempts: ${task.attempt ?? 0}.`];
  if (verification !== undefined) {
    const { method = "", passed = false, details = "" } = verification;
    lines.push(`Verification by ${method}: ${passed ? "passed" : "failed"}${details ? `, ${details}` : ""}.`);
  }
  if (failure !== undefined) lines.push(`Failure: ${failure.reason}: ${failure.message ?? ""}`);
  if (cancellation !== undefined) lines.push(`Cancellation: ${cancellation.reason ?? ""}`);
  if (usage !== undefined) {
    lines.push(`Usage: ${usage.tokensUsed ?? 0} tokens, ${usage.costMicrocents ?? 0} microcents.`);
  }
  if (task.endTime !== undefined) lines.push(`Ended at ${task.endTime}.`);
  return lines;
}
