import { create } from "@bufbuild/protobuf";
import { type CapMessage, CapMessageSchema } from "@depute/contracts/cap/v1/message_pb";
import { MessageEffect, MessageOrigin } from "@depute/contracts/depute/tasks/v1/message_service_pb";
import { DeputeError, ErrorReason, formatTime, newId } from "@depute/core";
import { sha256Hex } from "@depute/core/sha256";
import type { WriteTx } from "@depute/store";
import { identityOf, toolResultsOf } from "../rules/attachments.ts";
import { kindOf, TYPES, wordsOf } from "../rules/message.ts";
import { rootIdOf } from "../rules/task-id.ts";
import { countWaiting, deliver, readMailbox } from "../store/inbox-rows.ts";
import {
  countMessage,
  countRefusal,
  insertParty,
  insertToolResults,
  readLineage,
} from "../store/lineage-rows.ts";
import { insertMessage, type StoredMessage } from "../store/message-rows.ts";
import type { CapContext } from "./context.ts";

/** The bus topic that wakes the watchers of an inbox. The key is the participant's id. */
export const INBOX_TOPIC = "inboxes";

/** Maximum number of messages in a lineage from its participants. */
export const MAX_MESSAGES = 10_000;

/**
 * Maximum number of messages in a lineage from senders outside it. These messages do not count towards `MAX_MESSAGES`.
 */
export const MAX_OUTSIDE = 1_000;

/** Maximum number of refused messages that a lineage records. */
export const MAX_REFUSALS = 1_000;

/** Maximum number of refused messages of one sender that a lineage records. */
export const MAX_REFUSALS_EACH = 100;

/** Maximum number of unacknowledged messages in an inbox. */
export const MAX_WAITING = 10_000;

/** Maximum number of unacknowledged messages of one sender in an inbox. */
export const MAX_WAITING_EACH = 1_000;

/** A message to store and deliver. */
export interface Posting {
  readonly message: CapMessage;
  readonly effect: MessageEffect;
  readonly origin?: MessageOrigin;
  /** The ids of the inboxes that get the message. If absent, the recipient's inbox. */
  readonly to?: readonly string[];
  /** The id of the task whose held result the message contains; absent for none. */
  readonly carries?: string;
  /** The organization that owns the lineage, if this message begins the lineage; absent for none. */
  readonly organization?: string;
  /**
   * Whether the sender is outside the lineage. Then neither sender nor recipient becomes a participant of the lineage.
   */
  readonly fromOutside?: boolean;
}

/**
 * Stores a message and delivers it, in the transaction `tx`. The message gets the server's timestamp. A separate column
 * stores the sender's timestamp.
 *
 * @throws DeputeError LIMIT_EXCEEDED (`tree.messages`, `inbox`), except for messages of the platform; INVALID_REQUEST
 * for a message without a kind
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
  const lineage = { rootId, organization: posting.organization ?? "" };
  const stored: StoredMessage = {
    messageId: newId(receiveMs),
    rootId,
    ...(await countMessage(tx, lineage, fromOutside ? "outside" : "inside", receiveMs)),
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

/** Records a refused message in its lineage: sender, recipient and reason, without content. */
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
  // A refused message does not create a lineage. Limits bound the recorded refusals, so that repeated refusals cannot
  // fill a lineage.
  if (lineage === undefined || lineage.refusals >= MAX_REFUSALS) return;
  if ((await countRefusal(tx, rootId, senderId)) > MAX_REFUSALS_EACH) return;
  const receiveMs = clock.now();
  await insertMessage(tx, {
    messageId: newId(receiveMs),
    rootId,
    ...(await countMessage(tx, { rootId, organization: lineage.organization }, "refused", receiveMs)),
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
    // One sender may have at most MAX_WAITING_EACH unacknowledged messages in an inbox. If the whole inbox has fewer,
    // no count by sender is needed.
    if (waiting < MAX_WAITING_EACH) continue;
    const ownCount = await countWaiting(tx, mailbox, senderId, MAX_WAITING_EACH);
    if (ownCount >= MAX_WAITING_EACH) throw full("inbox", MAX_WAITING_EACH);
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
  const problem =
    limit === "inbox"
      ? "unacknowledged messages are in the recipient's inbox: the recipient must first acknowledge some"
      : "messages are in this lineage: begin another lineage";
  return new DeputeError(ErrorReason.LIMIT_EXCEEDED, `${max} ${problem}`, {
    metadata: { limit, max: String(max) },
  });
}
