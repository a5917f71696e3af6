import type { HandlerContext } from "@connectrpc/connect";
import { TaskSchema, TaskStatus } from "@depute/contracts/depute/tasks/v1/task_pb";
import {
  type DecideReviewRequest,
  DecideReviewRequestSchema,
  type ListReviewsRequest,
  ReviewDecision,
} from "@depute/contracts/depute/tasks/v1/task_service_pb";
import { ReviewVerdict } from "@depute/contracts/depute/verifier/v1/review_service_pb";
import { DeputeError, decodePageToken, ErrorReason, encodePageToken, pageSize } from "@depute/core";
import { bytesOf, cutPage, messageDigest } from "@depute/service";
import type { Caller } from "../caller.ts";
import { decided } from "../operations/decide.ts";
import type { TaskRecord } from "../rules/record.ts";
import { outcomeOf } from "../rules/review.ts";
import { stateConflict } from "../rules/state-machine.ts";
import { isOverseer, requireVisible } from "../rules/visibility.ts";
import { listInReview } from "../store/tree-rows.ts";
import { command, isAnswered } from "./commands.ts";
import { callerOf, callOptions, findVisible, type TasksContext } from "./context.ts";
import { positionOf } from "./list.ts";

const VERDICTS: Partial<Record<ReviewDecision, ReviewVerdict>> = {
  [ReviewDecision.APPROVED]: ReviewVerdict.APPROVED,
  [ReviewDecision.CHANGES_REQUESTED]: ReviewVerdict.CHANGES_REQUESTED,
  [ReviewDecision.REJECTED]: ReviewVerdict.REJECTED,
};

/** Lets a held result pass, sends it back, or turns it down: by the queue of reviews, which decides. */
export async function decideReview(
  tasks: TasksContext,
  request: DecideReviewRequest,
  context: HandlerContext,
): Promise<string> {
  const { taskId, requestId, comment } = request;
  const { engine, reviews } = tasks;
  const caller = await callerOf(tasks, context);
  const verdict = VERDICTS[request.decision] ?? ReviewVerdict.UNSPECIFIED;
  const digest = messageDigest(DecideReviewRequestSchema, request);
  const decision = { verdict, comment };
  const record = await findVisible(tasks, caller, taskId);
  requireOverseer(caller, record);
  const once = { requestId, digest };
  // What was decided by this request before is not asked of the queue again.
  if (await engine.store.read((tx) => isAnswered(tx, caller, once))) return taskId;
  const { status } = record.task;
  if (status !== TaskStatus.IN_REVIEW) throw stateConflict(taskId, status, outcomeOf(verdict));
  const reviewer = record.overseerPrincipal || caller.principal;
  await reviews.decide(taskId, decision, reviewer, callOptions(tasks, context), () =>
    command(
      tasks,
      caller,
      taskId,
      once,
      (before, nowMs, tx) => decided(tx, reviews, before, decision, nowMs, false),
      requireOverseer,
    ),
  );
  return taskId;
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
  const { items: page, more } = cutPage(rows, size, ({ record }) => bytesOf(TaskSchema, record.task));
  const last = page.at(-1)?.position;
  return {
    // Whoever had the overseer's id when the task was created decides, not whoever has it now.
    tasks: page.filter(({ record }) => isOverseer(caller, record)).map(({ record }) => record.task),
    nextPageToken: more && last !== undefined ? encodePageToken([last.createMs, last.taskId], filters) : "",
  };
}
