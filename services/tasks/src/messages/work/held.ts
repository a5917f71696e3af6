import type { ReadTx } from "@depute/store";
import type { TaskEngine } from "../../core/index.ts";
import { outputWords } from "../rules/content.ts";
import { carries } from "../rules/held.ts";
import { type Kind, kindOf, type Words, wordsOf } from "../rules/message.ts";
import { baseOf } from "../rules/participant.ts";
import { type HeldTask, heldBy } from "../store/held-rows.ts";
import { readMessage } from "../store/message-rows.ts";
import { findCapTask } from "../store/task-rows.ts";

/**
 * Maximum number of held results in each of two groups. The comparison covers the sender's newest results, and the
 * newest results that the sender oversees.
 */
const MAX_HELD = 8;

/**
 * Finds a task whose held result a message contains. Skips a held result if the message's recipient is the result's
 * author or overseer.
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
  for (const heldTask of await heldBy(tx, baseOf(senderId), MAX_HELD)) {
    if (recipient === heldTask.holder || recipient === heldTask.overseer) continue;
    if (carries(wordsOf(kind), await resultOf(tx, engine, heldTask), await givenTo(tx, heldTask)))
      return heldTask.capTaskId;
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

/** Returns the text and attachments of the notice that created the task. */
async function givenTo(tx: ReadTx, { taskId }: HeldTask): Promise<Words> {
  const cap = await findCapTask(tx, taskId);
  const notice = cap && (await readMessage(tx, cap.noticeId));
  return notice?.message === undefined ? { text: "", attachments: [] } : wordsOf(kindOf(notice.message));
}
