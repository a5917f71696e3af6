import { create } from "@bufbuild/protobuf";
import { type CapMessage, CapMessageSchema } from "@depute/contracts/cap/v1/message_pb";
import { MessageEffect, MessageOrigin } from "@depute/contracts/depute/tasks/v1/message_service_pb";
import { DeputeError, ErrorReason, formatTime, newId } from "@depute/core";
import { sha256Hex } from "@depute/core/sha256";
import type { WriteTx } from "@depute/store";
import type { CapContext } from "../handlers/context.ts";
import { identityOf, toolResultsOf } from "../rules/attachments.ts";
import { kindOf, TYPES, wordsOf } from "../rules/message.ts";
import { rootIdOf } from "../rules/task-id.ts";
import {
  countMessage,
  countRefusal,
  countWaiting,
  deliver,
  insertMessage,
  insertParty,
  insertToolResults,
  readLineage,
  readMailbox,
  type StoredMessage,
} from "../store/message-rows.ts";

/** Wakes those who watch an inbox; the key is whose it is. */
export const INBOX_TOPIC = "inboxes";

/** Messages that a lineage may have. */
export const MAX_MESSAGES = 10_000;

/** Messages that a lineage may have from senders without a part in it, beside those of its participants. */
export const MAX_OUTSIDE = 1_000;

/** Refused messages of a lineage that are noted. */
export const MAX_REFUSALS = 1_000;

/** Refused messages of one sender that are noted in a lineage. */
export const MAX_REFUSALS_EACH = 100;

/** Messages that an inbox may hold without being acknowledged. */
export const MAX_WAITING = 10_000;

/** Messages of one sender that may wait in another's inbox. */
export const MAX_WAITING_EACH = 1_000;

/** A message on its way into inboxes. */
export interface Posting {
  readonly message: CapMessage;
  readonly effect: MessageEffect;
  readonly origin?: MessageOrigin;
  /** Whose inboxes get it; its recipient's when absent. */
  readonly to?: readonly string[];
  /** The task whose held result it carries; none when absent. */
  readonly carries?: string;
  /** Whether its sender has no part in the lineage: then neither sender nor recipient gets one by it. */
  readonly fromOutside?: boolean;
}

/**
 * Keeps a message and delivers it, in a transaction. Its timestamp is the server's; the sender's is kept beside it.
 *
 * @throws DeputeError LIMIT_EXCEEDED (`tree.messages`, `inbox`), unless the platform itself speaks
 */
export async function post(
  tx: WriteTx,
  { clock, bus }: CapContext,
  posting: Posting,
): Promise<StoredMessage> {
  const { effect, origin = MessageOrigin.SENDER, fromOutside = false } = posting;
  const kind = kindOf(posting.message);
  const { taskId, senderId, recipientId, timestamp } = kind.value;
  const to = posting.to ?? [recipientId];
  const rootId = rootIdOf(taskId);
  const receiveMs = clock.now();
  if (origin === MessageOrigin.SENDER) await requireRoom(tx, rootId, senderId, to, fromOutside);
  const stored: StoredMessage = {
    messageId: newId(),
    rootId,
    number: await countMessage(tx, rootId, fromOutside ? "outside" : "inside", receiveMs),
    taskId,
    type: TYPES[kind.case],
    senderId,
    recipientId,
    receiveMs,
    origin,
    effect,
    errorCode: kind.case === "errorResponse" ? kind.value.errorCode : 0,
    reason: "",
    carries: posting.carries ?? "",
    claimed: timestamp,
    message: stamped(posting.message, receiveMs),
  };
  await insertMessage(tx, stored);
  if (!fromOutside) {
    for (const participant of new Set([senderId, recipientId, ...to]))
      await insertParty(tx, rootId, participant);
    const results = toolResultsOf(wordsOf(kind)).map((result) => sha256Hex(identityOf(result)));
    await insertToolResults(tx, rootId, results);
  }
  for (const mailbox of new Set(to)) await deliver(tx, mailbox, stored.messageId);
  tx.afterCommit(() => {
    for (const mailbox of new Set(to)) bus.publish(INBOX_TOPIC, mailbox);
  });
  return stored;
}

/** Notes in its lineage that a message was refused: who, to whom and why, not what it said. */
export async function noteRefusal(
  tx: WriteTx,
  { clock }: CapContext,
  message: CapMessage,
  refusal: { readonly errorCode: number; readonly reason: string },
): Promise<void> {
  const kind = kindOf(message);
  const { taskId, senderId, recipientId } = kind.value;
  const rootId = rootIdOf(taskId);
  const lineage = await readLineage(tx, rootId);
  // A lineage comes to be by what was sent, and whoever is refused again and again does not fill it.
  if (lineage === undefined || lineage.refusals >= MAX_REFUSALS) return;
  if ((await countRefusal(tx, rootId, senderId)) > MAX_REFUSALS_EACH) return;
  const receiveMs = clock.now();
  await insertMessage(tx, {
    messageId: newId(),
    rootId,
    number: await countMessage(tx, rootId, "refused", receiveMs),
    taskId,
    type: TYPES[kind.case],
    senderId,
    recipientId,
    receiveMs,
    origin: MessageOrigin.SENDER,
    effect: MessageEffect.REFUSED,
    errorCode: refusal.errorCode,
    reason: refusal.reason,
    carries: "",
    claimed: undefined,
    message: undefined,
  });
}

async function requireRoom(
  tx: WriteTx,
  rootId: string,
  senderId: string,
  to: readonly string[],
  fromOutside: boolean,
): Promise<void> {
  const { messages = 0, outside = 0 } = (await readLineage(tx, rootId)) ?? {};
  if (fromOutside && outside >= MAX_OUTSIDE) throw full("tree.messages", MAX_OUTSIDE);
  if (messages - outside >= MAX_MESSAGES) throw full("tree.messages", MAX_MESSAGES);
  for (const mailbox of to) {
    const { waiting } = await readMailbox(tx, mailbox);
    if (waiting >= MAX_WAITING) throw full("inbox", MAX_WAITING);
    // Nobody fills another's inbox alone. As long as it is not crowded, nobody has to count.
    if (waiting < MAX_WAITING_EACH) continue;
    const own = await countWaiting(tx, mailbox, senderId, MAX_WAITING_EACH);
    if (own >= MAX_WAITING_EACH) throw full("inbox", MAX_WAITING_EACH);
  }
}

function stamped({ kind }: CapMessage, receiveMs: number): CapMessage {
  const timestamp = formatTime(receiveMs);
  if (kind.case === undefined) return create(CapMessageSchema);
  return create(CapMessageSchema, {
    kind: { case: kind.case, value: { ...kind.value, timestamp } } as typeof kind,
  });
}

function full(limit: string, max: number): DeputeError {
  const what = limit === "inbox" ? "messages wait in the recipient's inbox" : "messages are in this lineage";
  return new DeputeError(ErrorReason.LIMIT_EXCEEDED, `${max} ${what}`, {
    metadata: { limit, max: String(max) },
  });
}
