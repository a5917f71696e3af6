import { create } from "@bufbuild/protobuf";
import type { HandlerContext } from "@connectrpc/connect";
import { TaskChangesRequestedSchema } from "@depute/contracts/depute/tasks/v1/task_event_pb";
import { TaskStatus } from "@depute/contracts/depute/tasks/v1/task_pb";
import {
  type DecideReviewRequest,
  DecideReviewRequestSchema,
  type ListReviewsRequest,
  ReviewDecision,
} from "@depute/contracts/depute/tasks/v1/task_service_pb";
import { DeputeError, decodePageToken, ErrorReason, encodePageToken, pageSize } from "@depute/core";
import type { WriteTx } from "@depute/store";
import { messageDigest } from "../digest.ts";
import { advance } from "../rules/advance.ts";
import { failureOf, type TaskPayload } from "../rules/apply-event.ts";
import type { TaskRecord } from "../rules/record.ts";
import { stateConflict } from "../rules/state-machine.ts";
import { isOverseer, requireVisible } from "../rules/visibility.ts";
import { listInReview } from "../store/tree-rows.ts";
import { deleteHeldResult, readHeldResult } from "../store/work-rows.ts";
import { command } from "./commands.ts";
import { type Caller, callerOf, callOptions, type TasksContext } from "./context.ts";
import { positionOf } from "./list.ts";

/** The failure's word when an overseer turned a result down. */
const REVIEW_REJECTED = "REVIEW_REJECTED";

/** Lets a held result pass, sends it back, or turns it down. */
export async function decideReview(
  tasks: TasksContext,
  request: DecideReviewRequest,
  context: HandlerContext,
): Promise<string> {
  const { taskId, requestId } = request;
  const caller = await callerOf(tasks, context);
  const digest = messageDigest(DecideReviewRequestSchema, request);
  await command(
    tasks,
    caller,
    taskId,
    { requestId, digest },
    async (before, nowMs, tx) => {
      const { status } = before.task;
      if (status !== TaskStatus.IN_REVIEW) throw stateConflict(taskId, status, outcomeOf(request));
      const payload = await payloadOf(tx, before, request);
      await deleteHeldResult(tx, taskId);
      return advance(before, { payload, by: "overseer" }, nowMs);
    },
    requireOverseer,
  );
  return taskId;
}

async function payloadOf(
  tx: WriteTx,
  { task }: TaskRecord,
  { decision, comment }: DecideReviewRequest,
): Promise<TaskPayload> {
  switch (decision) {
    case ReviewDecision.APPROVED: {
      const value = await readHeldResult(tx, task.id);
      if (value === undefined) throw new Error(`task ${task.id} is in review and has no result`);
      return { case: "completed", value };
    }
    case ReviewDecision.CHANGES_REQUESTED: {
      const value = create(TaskChangesRequestedSchema, { comment, attempt: task.attempt });
      return { case: "changesRequested", value };
    }
    default:
      return { case: "failed", value: failureOf(REVIEW_REJECTED, comment) };
  }
}

function outcomeOf({ decision }: DecideReviewRequest): TaskStatus {
  if (decision === ReviewDecision.APPROVED) return TaskStatus.COMPLETED;
  return decision === ReviewDecision.CHANGES_REQUESTED ? TaskStatus.PENDING : TaskStatus.FAILED;
}

function requireOverseer(caller: Caller, record: TaskRecord): void {
  requireVisible(caller, record);
  if (isOverseer(caller, record)) return;
  throw new DeputeError(
    ErrorReason.CALLER_NOT_ALLOWED,
    "only the delegate's overseer can decide on its results",
  );
}

/** A page of the tasks that wait for an overseer. */
export async function listReviews(
  tasks: TasksContext,
  { agentId, pageSize: asked, pageToken }: ListReviewsRequest,
  context: HandlerContext,
) {
  const caller = await callerOf(tasks, context);
  const { agent } = await tasks.dependencies.agents.getAgent(
    { id: agentId, viewer: caller.principal },
    callOptions(tasks, context),
  );
  if (agent === undefined || !caller.mayActFor(agent.principal)) {
    throw new DeputeError(ErrorReason.CALLER_NOT_ALLOWED, "only the overseer itself can see its reviews");
  }
  const filters = { reviews: agentId };
  const size = pageSize(asked);
  const after = positionOf(decodePageToken(pageToken, filters));
  const rows = await tasks.engine.store.read((tx) => listInReview(tx, agentId, after, size + 1));
  const page = rows.slice(0, size);
  const last = page.at(-1)?.position;
  return {
    // Whoever had the overseer's id when the task was created decides, not whoever has it now.
    tasks: page.filter(({ record }) => isOverseer(caller, record)).map(({ record }) => record.task),
    nextPageToken:
      rows.length > size && last !== undefined ? encodePageToken([last.createMs, last.taskId], filters) : "",
  };
}
