import type { ReadTx } from "@depute/store";
import type { TaskEngine } from "../../core/index.ts";
import { outputWords } from "../rules/content.ts";
import { carries } from "../rules/held.ts";
import { type Kind, kindOf, type Words, wordsOf } from "../rules/message.ts";
import { baseOf } from "../rules/participant.ts";
import { type HeldTask, heldBy } from "../store/held-rows.ts";
import { readMessage } from "../store/message-rows.ts";
import { findCapTask } from "../store/task-rows.ts";

/** Held results that a message is compared with: the newest ones of its sender, and of those that its sender oversees. */
const MAX_HELD = 8;

/**
 * The task whose held result a message carries to a participant other than its author and its overseer.
 *
 * @returns CAP's id of the task; empty for none
 */
export async function carriedBy(
  tx: ReadTx,
  engine: Pick<TaskEngine, "heldResult">,
  kind: Kind,
): Promise<string> {
  const { senderId, recipientId } = kind.value;
  const recipient = baseOf(recipientId);
  for (const held of await heldBy(tx, baseOf(senderId), MAX_HELD)) {
    if (recipient === held.holder || recipient === held.overseer) continue;
    if (carries(wordsOf(kind), await resultOf(tx, engine, held), await givenTo(tx, held)))
      return held.capTaskId;
  }
  return "";
}

async function resultOf(
  tx: ReadTx,
  engine: Pick<TaskEngine, "heldResult">,
  { taskId }: HeldTask,
): Promise<Words> {
  return outputWords((await engine.heldResult(tx, taskId))?.output);
}

/** What the notice said that handed over the task. */
async function givenTo(tx: ReadTx, { taskId }: HeldTask): Promise<Words> {
  const cap = await findCapTask(tx, taskId);
  const notice = cap && (await readMessage(tx, cap.noticeId));
  return notice?.message === undefined ? { text: "", attachments: [] } : wordsOf(kindOf(notice.message));
}
