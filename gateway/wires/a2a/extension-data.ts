import { type JsonObject, type MessageInitShape, toJson } from "@bufbuild/protobuf";
import { type Task, TaskStatus, TaskVerificationSchema } from "@depute/contracts/depute/tasks/v1/task_pb";
import type { TaskDraftSchema } from "@depute/contracts/depute/tasks/v1/task_service_pb";
import type { DelegationRecord } from "@depute/contracts/depute/tokens/v1/delegation_service_pb";
import type { Message } from "@depute/contracts/lf/a2a/v1/a2a_pb";
import { A2A_EXTENSIONS, invalid, isObject } from "@depute/core";

const { ACTOR_CHAIN, BUDGETS, DELEGATED_AUTHORITY, SUSPENSION, VERIFIED_RESULTS } = A2A_EXTENSIONS;

/** The URIs of the extensions that add data to a task's metadata. */
const SHOWN = [BUDGETS, VERIFIED_RESULTS, DELEGATED_AUTHORITY, ACTOR_CHAIN, SUSPENSION].map(({ uri }) => uri);

type Active = ReadonlySet<string>;
type DraftFields = Pick<MessageInitShape<typeof TaskDraftSchema>, "spend" | "contractId" | "workerToken">;

/** Whether at least one active extension adds data to tasks. */
export function showsData(active: Active): boolean {
  return SHOWN.some((uri) => active.has(uri));
}

/**
 * Returns the fields of the task draft that the message's extension data sets. Only active extensions count.
 * (docs/a2a.md, Extensions)
 *
 * @throws DeputeError INVALID_REQUEST for malformed data of an active extension
 */
export function draftFieldsOf(message: Message, active: Active): DraftFields {
  const budget = dataOf(message, BUDGETS.uri, active);
  const results = dataOf(message, VERIFIED_RESULTS.uri, active);
  const authority = dataOf(message, DELEGATED_AUTHORITY.uri, active);
  const maxTokens = budget?.amount("maxTokens");
  const maxCostMicrocents = budget?.amount("maxCostMicrocents");
  const workerToken = authority?.text("token");
  const contractId = results?.text("contractId") ?? authority?.text("contractId");
  for (const data of [budget, results, authority]) data?.end();
  return {
    ...(budget && {
      spend: {
        ...(maxTokens !== undefined && { maxTokens }),
        ...(maxCostMicrocents !== undefined && { maxCostMicrocents }),
      },
    }),
    ...(contractId !== undefined && { contractId }),
    ...(workerToken !== undefined && { workerToken }),
  };
}

/** The action on an existing task that a client requests by the suspension extension. */
export type SuspensionAction = "suspend" | "resume";

/**
 * Returns the action that a message requests in the data of the suspension extension; undefined if the message contains
 * no such data.
 *
 * @throws DeputeError INVALID_REQUEST
 */
export function actionOf(message: Message, active: Active): SuspensionAction | undefined {
  const data = dataOf(message, SUSPENSION.uri, active);
  if (data === undefined) return undefined;
  const action = data.text("action");
  data.end();
  if (action === "suspend" || action === "resume") return action;
  throw data.fault("action", 'must be "suspend" or "resume"');
}

/**
 * Returns the metadata of a task: the data of each active extension under its URI.
 *
 * @param chain the delegations of the task's token, the root first; empty if the task has no token
 */
export function metadataOf(task: Task, active: Active, chain: readonly DelegationRecord[]): JsonObject {
  const { spend, usage, verification, attestationId, contractId, delegationId } = task;
  const data: Readonly<Record<string, () => JsonObject>> = {
    [BUDGETS.uri]: () => ({
      ...(spend?.maxTokens !== undefined && { maxTokens: Number(spend.maxTokens) }),
      ...(spend?.maxCostMicrocents !== undefined && { maxCostMicrocents: Number(spend.maxCostMicrocents) }),
      ...(usage && {
        tokensUsed: Number(usage.tokensUsed),
        costMicrocents: Number(usage.costMicrocents),
      }),
    }),
    [VERIFIED_RESULTS.uri]: () => ({
      ...(contractId !== "" && { contractId }),
      ...(verification && { verification: toJson(TaskVerificationSchema, verification) as JsonObject }),
      ...(attestationId !== "" && { attestationId }),
    }),
    [DELEGATED_AUTHORITY.uri]: () => (delegationId === "" ? {} : { delegationId }),
    [ACTOR_CHAIN.uri]: () => ({
      onBehalfOf: chain[0]?.delegator ?? task.delegator,
      delegator: task.delegator,
      actors: chain.map(({ delegatee }) => delegatee),
    }),
    [SUSPENSION.uri]: () => ({
      isSuspended: task.status === TaskStatus.SUSPENDED,
      isCheckpointAvailable: task.checkpointAvailable,
    }),
  };
  return Object.fromEntries(
    Object.entries(data)
      .filter(([uri]) => active.has(uri))
      .map(([uri, read]) => [uri, read()]),
  );
}

/** Reads the members of one extension's data in a message. */
class ExtensionData {
  readonly #uri: string;
  readonly #members: Readonly<Record<string, unknown>>;
  readonly #read = new Set<string>();

  constructor(uri: string, members: Readonly<Record<string, unknown>>) {
    this.#uri = uri;
    this.#members = members;
  }

  text(name: string): string | undefined {
    const value = this.#member(name);
    if (value === undefined || typeof value === "string") return value;
    throw this.fault(name, "must be a string");
  }

  amount(name: string): bigint | undefined {
    const value = this.#member(name);
    if (value === undefined) return undefined;
    if (typeof value === "number" && Number.isSafeInteger(value) && value >= 0) return BigInt(value);
    throw this.fault(name, "must be a whole number from 0 to 2^53-1");
  }

  /** @throws DeputeError INVALID_REQUEST if the data has a member that this class has not read */
  end(): void {
    for (const name of Object.keys(this.#members))
      if (!this.#read.has(name)) throw this.fault(name, "is not a member of this extension: leave it out");
  }

  fault(name: string, description: string) {
    return invalid(`message.metadata["${this.#uri}"].${name}`, description);
  }

  #member(name: string): unknown {
    this.#read.add(name);
    return this.#members[name];
  }
}

/**
 * Returns the data of an extension; undefined if the extension is not active or the message has no such data. Throws
 * DeputeError INVALID_REQUEST if the data is not an object.
 */
function dataOf({ metadata }: Message, uri: string, active: Active): ExtensionData | undefined {
  const value = metadata?.[uri];
  if (value === undefined || !active.has(uri)) return undefined;
  if (!isObject(value)) throw invalid(`message.metadata["${uri}"]`, "must be an object");
  return new ExtensionData(uri, value);
}
