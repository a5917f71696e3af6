import type { CapMessage } from "@depute/contracts/cap/v1/message_pb";
import { TaskStatus } from "@depute/contracts/depute/tasks/v1/task_pb";
import type { ReadTx } from "@depute/store";
import { isParty, readLineage } from "./rows.ts";
import { kindOf } from "./rules/message.ts";
import { isRole } from "./rules/participant.ts";
import type { Facts } from "./rules/permit.ts";
import { parentIdOf, rootIdOf } from "./rules/task-id.ts";
import { factsOf, holdersFrom, type Known, readKnown } from "./task-rows.ts";

/** Reads what the rules ask about a message. */
export async function readFacts(
  tx: ReadTx,
  message: CapMessage,
  settings: { readonly plainApproval: boolean; isEscalated(tx: ReadTx, taskId: string): Promise<boolean> },
): Promise<Facts> {
  const kind = kindOf(message);
  const { taskId, senderId } = kind.value;
  const rootId = rootIdOf(taskId);
  const task = await readKnown(tx, taskId);
  const parentId = kind.case === "delegationNotice" ? parentIdOf(taskId) : "";
  const parent = parentId === "" ? undefined : await readKnown(tx, parentId);
  const reviewed = await reviewedBy(tx, task);
  return {
    task: task && factsOf(task),
    parent: parent && factsOf(parent),
    holdersAbove: parentId === "" ? [] : await holdersFrom(tx, parentId),
    reviewed: reviewed && factsOf(reviewed),
    isEscalated: reviewed !== undefined && (await settings.isEscalated(tx, reviewed.cap.taskId)),
    hasLineage: (await readLineage(tx, rootId)) !== undefined,
    isKnown: isRole(senderId) || (await isParty(tx, rootId, senderId)),
    plainApproval: settings.plainApproval,
  };
}

/** The task under review that a task stands for: itself, or the one whose review it is. */
async function reviewedBy(tx: ReadTx, task: Known | undefined): Promise<Known | undefined> {
  if (task === undefined) return undefined;
  const isHeld = ({ record }: Known) => record.task.status === TaskStatus.IN_REVIEW;
  if (isHeld(task)) return task;
  const reviewed = task.cap.reviewsId === "" ? undefined : await readKnown(tx, task.cap.reviewsId);
  return reviewed !== undefined && isHeld(reviewed) ? reviewed : undefined;
}
