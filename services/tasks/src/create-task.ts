import type { TaskDraft } from "@depute/contracts/depute/tasks/v1/task_service_pb";
import { DeputeError, ErrorReason, newId } from "@depute/core";
import type { ReadTx } from "@depute/store";
import type { Engine } from "./engine.ts";
import { type Admission, newTask } from "./rules/new-task.ts";
import { insertBlocks } from "./store/block-rows.ts";
import { insertEvent } from "./store/event-rows.ts";
import { insertInput, insertOutputSchema } from "./store/input-rows.ts";
import { findRequest, insertRequest } from "./store/request-rows.ts";
import { findByExternalId, insertTask } from "./store/task-rows.ts";

/** A call that hands over work. */
export interface CreateRequest {
  readonly delegator: string;
  readonly requestId: string;
  readonly draft: TaskDraft;
  /** Digest of the draft. */
  readonly digest: string;
}

/** What admission found, and what goes with the task to the store. */
export interface Admitted {
  readonly admission: Admission;
  /** The schema that `admission.outputSchema` names, JSON in UTF-8. */
  readonly outputSchema: Uint8Array | undefined;
  /** The revocation ids of the worker token's blocks. */
  readonly blocks: readonly string[];
}

/** A task that was created now, or the one that was there. */
export interface Created {
  readonly taskId: string;
  readonly isNew: boolean;
}

/**
 * The task that this request, or one with the same external id and draft, created before.
 *
 * @throws DeputeError REQUEST_ID_REUSED, TASK_ID_TAKEN when it asked for something else
 */
export async function findCreated(tx: ReadTx, request: CreateRequest): Promise<string | undefined> {
  const { delegator, requestId, draft, digest } = request;
  const byRequest = await findRequest(tx, delegator, requestId);
  if (byRequest !== undefined) {
    if (byRequest.draft_digest === digest) return byRequest.task_id;
    throw new DeputeError(ErrorReason.REQUEST_ID_REUSED, "the request id was used with another draft", {
      metadata: { request_id: requestId },
    });
  }
  if (draft.externalId === "") return undefined;
  const byExternalId = await findByExternalId(tx, delegator, draft.externalId);
  if (byExternalId === undefined || byExternalId.draft_digest === digest) return byExternalId?.task_id;
  throw new DeputeError(ErrorReason.TASK_ID_TAKEN, "the external id is that of another task", {
    metadata: { external_id: draft.externalId },
  });
}

/**
 * Stores a new task with its first event; a request that was answered before gets the task that is there.
 *
 * @throws DeputeError as {@link findCreated}
 */
export async function createTask(
  engine: Engine,
  request: CreateRequest,
  admitted: Admitted,
): Promise<Created> {
  const { delegator, requestId, draft, digest } = request;
  return engine.store.write(async (tx) => {
    const known = await findCreated(tx, request);
    const taskId = known ?? newId();
    const recordRequest = { delegator, requestId, draftDigest: digest, taskId };
    if (known !== undefined) {
      if ((await findRequest(tx, delegator, requestId)) === undefined) await insertRequest(tx, recordRequest);
      return { taskId, isNew: false };
    }
    const nowMs = engine.clock.now();
    const { record, events } = newTask(taskId, draft, admitted.admission, nowMs);
    await insertTask(tx, record, { draftDigest: digest, createMs: nowMs });
    for (const event of events) await insertEvent(tx, event);
    await insertInput(tx, taskId, { input: draft.input, workerToken: draft.workerToken });
    await insertRequest(tx, recordRequest);
    await insertBlocks(tx, taskId, admitted.blocks);
    if (admitted.outputSchema !== undefined) {
      await insertOutputSchema(tx, admitted.admission.outputSchema, admitted.outputSchema);
    }
    engine.announce(tx, record);
    return { taskId, isNew: true };
  });
}
