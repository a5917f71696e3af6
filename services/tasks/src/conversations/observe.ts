import type { WriteTx } from "@depute/store";
import type { TaskChange, TaskEventName } from "../core/index.ts";
import { insertConversation, insertPlace, updateConversation } from "./store/rows.ts";
import { noteEvent } from "./store/webhook-rows.ts";

/**
 * The events whose payload can contain a message. The delegator's messages are in `created` and `inputProvided`, the
 * worker's messages in `inputRequired`.
 */
const SAID: ReadonlySet<TaskEventName> = new Set(["created", "inputRequired", "inputProvided"]);

/**
 * Updates the rows of a conversation when its task changes. Does nothing for a task without a conversation.
 *
 * @param wakeSender wakes the sender, which delivers events to webhooks
 */
export async function noteChange(
  tx: WriteTx,
  { before, after, events }: TaskChange,
  wakeSender: () => void,
): Promise<void> {
  const { task } = after;
  if (!task.isConversation) return;
  if (before === undefined) await insertConversation(tx, task);
  else if (await updateConversation(tx, task)) {
    await noteEvent(tx, task.id, events.at(-1)?.sequence ?? 0n);
    tx.afterCommit(wakeSender);
  }
  for (const { payload, sequence } of events) {
    if (SAID.has(payload.case)) await insertPlace(tx, "conversation_messages", task.id, sequence);
    if (payload.case === "partial") await insertPlace(tx, "conversation_partials", task.id, sequence);
  }
}
