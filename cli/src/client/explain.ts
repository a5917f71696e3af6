import { writeFileSync } from "node:fs";
import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { CommandError, EXIT } from "../exit-codes.ts";
import { enumName } from "../print/cells.ts";
import { oneLine } from "../print/safe-text.ts";
import type { Invocation, ServiceName } from "../table/command.ts";
import { type Connection, connected } from "./connection.ts";
import { type Form, isDocument, printDocument, write } from "./output.ts";

/**
 * The facts about a task, as the platform's services return them. The member of a fact is undefined if the fact does
 * not exist, or if the caller may not see the fact. A missing lineage is empty.
 */
interface Findings {
  readonly task: JsonObject;
  /** The task's ancestors, and the task itself. */
  readonly lineage: readonly JsonObject[];
  /** The authority of the task, as ExplainAuthority returns it. */
  readonly authority: JsonObject | undefined;
  readonly contract: JsonObject | undefined;
}

/** `depute explain [TASK | --receipt ID | --call ID]`. */
export async function explain(invocation: Invocation): Promise<void> {
  const { TASK: task, receipt, call } = invocation.values;
  const given = [task, receipt, call].filter((value) => value !== undefined);
  if (given.length !== 1) {
    throw new CommandError("name one of TASK, --receipt and --call", EXIT.usage);
  }
  return task === undefined ? explainUse(invocation) : explainTask(invocation, String(task));
}

/** Explains the authority under which a purchase or a tool call was made. */
async function explainUse(invocation: Invocation): Promise<void> {
  const { receipt, call, sequence, output, bundle: file } = invocation.values;
  const subject: JsonObject =
    receipt === undefined
      ? { toolCall: { requestId: String(call), sequence: String(sequence ?? 0) } }
      : { receiptId: String(receipt) };
  const { explanation: authority, bundle } = await connected(invocation, (connection) =>
    connection.call("delegations", "explainAuthority", subject),
  );
  if (typeof file === "string") writeFileSync(file, String(bundle), { mode: 0o600 });
  if (isDocument(output as Form)) await printDocument(output as Form, { authority: authority ?? {} });
  else
    write(
      useLines(authority as JsonObject)
        .map(oneLine)
        .join("\n"),
    );
}

async function explainTask(invocation: Invocation, taskId: string): Promise<void> {
  const form = invocation.values.output as Form;
  const { bundle, ...findings } = await connected(invocation, (connection) => read(connection, taskId));
  const { bundle: file } = invocation.values;
  if (typeof file === "string") {
    if (bundle === undefined) throw new CommandError("the task's authority is not visible", EXIT.notFound);
    writeFileSync(file, bundle, { mode: 0o600 });
  }
  if (isDocument(form)) await printDocument(form, presentation(findings));
  else write(explanation(findings).map(oneLine).join("\n"));
}

async function read(
  connection: Connection,
  taskId: string,
): Promise<Findings & { readonly bundle: string | undefined }> {
  const task = (await connection.call("tasks", "getTask", { taskId })).task as JsonObject;
  const answerOf = (service: ServiceName, method: string, request: JsonObject) =>
    ifVisible(connection.call(service, method, request));
  const [lineage, authority, contract] = await Promise.all([
    answerOf("tasks", "getLineage", { taskId }),
    answerOf("delegations", "explainAuthority", { taskId }),
    task.contractId === undefined
      ? undefined
      : answerOf("contracts", "getContract", { contractId: task.contractId }),
  ]);
  return {
    task,
    lineage: (lineage?.tasks ?? []) as JsonObject[],
    authority: authority?.explanation as JsonObject | undefined,
    bundle: authority?.bundle as string | undefined,
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

/** Returns the lines that explain a task: its delegator, ancestors, authority, contract and outcome. */
export function explanation({ task, lineage, authority, contract }: Findings): string[] {
  const status = enumName(String(task.status), "TASK_STATUS_");
  const above = lineage.filter(({ id }) => id !== task.id);
  return [
    `Task ${task.id} is ${status}.`,
    `Delegator: ${task.delegator ?? ""}, at ${task.createTime ?? ""}.`,
    `Delegate: the agent ${task.agentId ?? "(none yet)"}${task.capabilityId ? `, capability ${task.capabilityId}` : ""}.`,
    ...above.map(({ id, delegator, agentId }) => `Ancestor: task ${id} for ${agentId}, from ${delegator}.`),
    ...authorityLines(task, authority),
    ...contractLines(task, contract),
    ...outcomeLines(task),
  ];
}

function authorityLines(task: JsonObject, authority: JsonObject | undefined): string[] {
  if (task.delegationId === undefined) {
    return ["Authority: no token; the platform identified the delegator by other credentials."];
  }
  if (authority === undefined) {
    return [`Authority: the delegation ${task.delegationId}, whose chain you may not see.`];
  }
  return chainLines(authority, "when the task was created");
}

/** Returns the lines about a chain: the person behind it, its blocks, and its validity at the time `then` and now. */
function chainLines(authority: JsonObject, then: string): string[] {
  const { onBehalfOf, blocks = [] } = authority as { onBehalfOf?: JsonObject; blocks?: JsonObject[] };
  return [
    ...(onBehalfOf === undefined
      ? []
      : [`On behalf of: ${onBehalfOf.subject} of ${onBehalfOf.issuer} (${onBehalfOf.principal}).`]),
    ...blocks.map(blockLine),
    `The authority was ${authority.validThen ? "valid" : "not valid"} ${then}; it is ${authority.validNow ? "valid" : "not valid"} now.`,
  ];
}

/** Returns the lines that explain a receipt or a tool call. */
export function useLines(authority: JsonObject): string[] {
  const {
    subjectId,
    principal,
    receipt,
    toolCall,
    blocks = [],
  } = authority as {
    subjectId: string;
    principal?: string;
    receipt?: JsonObject;
    toolCall?: { resource?: string; isAllowed?: boolean; decisions?: JsonObject[] };
    blocks?: JsonObject[];
  };
  const subject =
    receipt === undefined
      ? `Tool call ${subjectId} of ${toolCall?.resource ?? ""}: ${toolCall?.isAllowed ? "allowed" : "denied"}.`
      : `Receipt ${subjectId}: number ${receipt.sequence ?? 1} of the request ${receipt.requestId ?? ""}.`;
  return [
    subject,
    ...(toolCall?.decisions ?? []).map(decisionLine),
    `Authority of: ${principal || "no proven principal"}.`,
    ...(blocks.length === 0
      ? ["Authority: no token; the platform identified the caller by other credentials."]
      : []),
    ...chainLines(authority, `at ${authority.time ?? ""}`),
  ];
}

function decisionLine({ sequence, source, time, isAllowed, reason }: JsonObject): string {
  const outcome = isAllowed === true ? "allowed" : "denied";
  return `Decision ${sequence ?? 0} of ${source ?? ""} at ${time ?? ""}: ${outcome}${reason ? `, ${reason}` : ""}.`;
}

function blockLine(block: JsonObject, index: number): string {
  const { delegator, delegatee, delegationId, expireTime, narrowed = [] } = block;
  const state = enumName(String(block.validityNow), "BLOCK_VALIDITY_");
  const less = (narrowed as string[]).length === 0 ? "" : `; attenuates ${(narrowed as string[]).join(", ")}`;
  return `Authority, block ${index}: ${delegator} to ${delegatee}; ${state}, until ${expireTime}${less} (${delegationId}).`;
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
