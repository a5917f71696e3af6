import type { CapMessage } from "@depute/contracts/cap/v1/message_pb";
import { TaskStatus } from "@depute/contracts/depute/tasks/v1/task_pb";
import type { ReadTx } from "@depute/store";
import type { TaskEngine } from "../../core/index.ts";
import { kindOf } from "../rules/message.ts";
import { isRole } from "../rules/participant.ts";
import { type Facts, isTalk } from "../rules/permit.ts";
import { parentIdOf, rootIdOf } from "../rules/task-id.ts";
import { isParty, readLineage } from "../store/lineage-rows.ts";
import { factsOf, holdersFrom, type Known, readKnown } from "../store/task-rows.ts";
import type { CapContext } from "./context.ts";
import { carriedBy } from "./held.ts";

/** Reads the facts about a message for CAP's rules. */
export async function readFacts(
  tx: ReadTx,
  message: CapMessage,
  { settings, engine }: CapContext,
): Promise<Facts> {
  const kind = kindOf(message);
  const { taskId, senderId } = kind.value;
  const rootId = rootIdOf(taskId);
  const task = await readKnown(tx, engine, taskId);
  const parentId = kind.case === "delegationNotice" ? parentIdOf(taskId) : "";
  const parent = parentId === "" ? undefined : await readKnown(tx, engine, parentId);
  const subject = await subjectOf(tx, engine, task);
  const isHeld = subject?.record.task.status === TaskStatus.IN_REVIEW;
  return {
    task: task && factsOf(task),
    hasOpenParts: task !== undefined && (await engine.hasOpenChildren(tx, task.cap.taskId)),
    parent: parent && factsOf(parent),
    holdersAbove: parentId === "" ? [] : await holdersFrom(tx, parentId),
    subject: subject && factsOf(subject),
    isEscalated: isHeld && (await engine.reviews.isEscalated(tx, subject.cap.taskId)),
    hasLineage: (await readLineage(tx, rootId)) !== undefined,
    isKnown: isRole(senderId) || (await isParty(tx, rootId, senderId)),
    plainApproval: settings.plainApproval,
    carries: isTalk(kind) ? await carriedBy(tx, engine, kind) : "",
    refusesHeld: settings.refuseHeldResults,
  };
}

/**
 * Returns the task to whose result an overseer's message refers. For a message about a review task, returns the
 * reviewed task; otherwise the named task.
 */
async function subjectOf(
  tx: ReadTx,
  engine: TaskEngine,
  task: Known | undefined,
): Promise<Known | undefined> {
  if (task === undefined || task.cap.reviewsId === "") return task;
  return readKnown(tx, engine, task.cap.reviewsId);
}
