import type { JsonObject } from "@bufbuild/protobuf";
import type { Task } from "@depute/contracts/depute/tasks/v1/task_pb";
import type { DelegationRecord } from "@depute/contracts/depute/tokens/v1/delegation_service_pb";
import type { Task as A2aTask, StreamResponse } from "@depute/contracts/lf/a2a/v1/a2a_pb";
import { A2A_EXTENSIONS, ErrorReason } from "@depute/core";
import type { Clients } from "../../edge/clients.ts";
import { refusalIn } from "../../edge/fault.ts";
import type { WireCall } from "../../edge/wire-call.ts";
import type { A2aCall } from "./call.ts";
import { metadataOf, showsData } from "./extension-data.ts";

/** The error reasons with which the tokens service hides a delegation from a caller. */
const HIDDEN: ReadonlySet<ErrorReason> = new Set([
  ErrorReason.DELEGATION_NOT_FOUND,
  ErrorReason.DELEGATION_AMBIGUOUS,
  ErrorReason.CALLER_NOT_ALLOWED,
]);

/** Reads the data that the active extensions add to the metadata of tasks. */
export class TaskMetadata {
  readonly #clients: Pick<Clients, "delegations" | "tasks">;

  constructor(clients: Pick<Clients, "delegations" | "tasks">) {
    this.#clients = clients;
  }

  /**
   * Adds the data of the active extensions to the metadata of a task.
   *
   * @param stored the task as the tasks service returned it; if absent, this method reads the task
   */
  async addTo(shown: A2aTask, a2aCall: A2aCall, stored?: Task): Promise<A2aTask> {
    const metadata = await this.of(shown.id, a2aCall, stored);
    return metadata === undefined ? shown : { ...shown, metadata };
  }

  /**
   * Returns the data for a task that the caller may see, under the URIs of the extensions; undefined if no active
   * extension adds data.
   */
  async of(taskId: string, { call, extensions }: A2aCall, stored?: Task): Promise<JsonObject | undefined> {
    if (!showsData(extensions)) return undefined;
    const task = stored ?? (await this.#clients.tasks.getTask({ taskId }, call.aside)).task;
    if (task === undefined) throw new Error("GetTask answered without a task");
    const isChained = extensions.has(A2A_EXTENSIONS.ACTOR_CHAIN.uri) && task.delegationId !== "";
    return metadataOf(task, extensions, isChained ? await this.#chainOf(task, call) : []);
  }

  /** Returns the delegations of a task's token, the root first; empty if the caller is not a party to any of them. */
  async #chainOf({ delegationId }: Task, { aside, viewer }: WireCall): Promise<DelegationRecord[]> {
    try {
      const { delegations } = await this.#clients.delegations.getDelegationChain({ delegationId }, aside);
      // If the caller's proof is used up, the gateway reads in its own name. So the gateway itself must check that the
      // caller is a party.
      const isParty = delegations.some((each) => [each.delegator, each.delegatee].includes(viewer ?? ""));
      return viewer === "" || isParty ? delegations : [];
    } catch (thrown) {
      if (HIDDEN.has(refusalIn(thrown).reason)) return [];
      throw thrown;
    }
  }
}

/** Adds members to the metadata of an element of a stream. */
export function withMetadata(response: StreamResponse, members: JsonObject): StreamResponse {
  const { payload } = response;
  if (payload.case === undefined) return response;
  const value = { ...payload.value, metadata: { ...payload.value.metadata, ...members } };
  return { ...response, payload: { ...payload, value } as StreamResponse["payload"] };
}
