import { create } from "@bufbuild/protobuf";
import type { HandlerContext } from "@connectrpc/connect";
import {
  type AcknowledgeMessagesRequest,
  type InboxMessage,
  InboxMessageSchema,
  type ListConversationRequest,
  type ListInboxRequest,
  type WatchInboxRequest,
} from "@depute/contracts/depute/tasks/v1/message_service_pb";
import {
  DeputeError,
  decodePageToken,
  ErrorReason,
  encodePageToken,
  invalid,
  type PageFilters,
  pageSize,
  toTimestamp,
} from "@depute/core";
import { follow, linkSignals } from "@depute/service";
import type { ReadTx } from "@depute/store";
import { taskNotFound } from "../../core/index.ts";
import { isRole } from "../rules/participant.ts";
import { rootIdOf } from "../rules/task-id.ts";
import { acknowledge, type Delivery, readInbox, readMailbox, waitingMessages } from "../store/inbox-rows.ts";
import { isParty } from "../store/lineage-rows.ts";
import { conversation, readMessage } from "../store/message-rows.ts";
import { readCapTask } from "../store/task-rows.ts";
import type { CapContext } from "../work/context.ts";
import { extendInboxLeases, leaseToInbox, SILENCE_MS } from "../work/worker.ts";
import { readPage } from "./pages.ts";

/** Maximum number of messages that a watcher holds in memory. */
const WATCH_BATCH = 8;

/** Maximum number of messages that one transaction acknowledges. */
const ACKNOWLEDGE_BATCH = 200;

/** Returns a page of an inbox, and extends the leases of the inbox's tasks. */
export async function listInbox(cap: CapContext, request: ListInboxRequest, context: HandlerContext) {
  const { agentId, unacknowledgedOnly } = request;
  await requireOwn(cap, agentId, context);
  await extendInboxLeases(cap, agentId);
  const filters = { list: "inbox", agentId, unacknowledgedOnly, after: request.afterSequence };
  const after = startOf(request, filters);
  return cap.engine.store.read(async (tx) => {
    const { lastSequence, firstSequence } = await readMailbox(tx, agentId);
    requireKept(agentId, after, firstSequence);
    const { items, more } = await readPage(pageSize(request.pageSize), after, (from, limit) =>
      readInbox(tx, agentId, from, limit, unacknowledgedOnly),
    );
    return {
      messages: await toInboxMessages(tx, agentId, items),
      nextPageToken: more ? encodePageToken([items.at(-1)?.position ?? after], filters) : "",
      lastSequence: BigInt(lastSequence),
    };
  });
}

/**
 * Records that an agent has read messages. If a message is the notice of a pending task, also starts the task for the
 * agent's inbox.
 */
export async function acknowledgeMessages(
  cap: CapContext,
  { agentId, upToSequence, sequences }: AcknowledgeMessagesRequest,
  context: HandlerContext,
) {
  await requireOwn(cap, agentId, context);
  await extendInboxLeases(cap, agentId);
  const { engine } = cap;
  const upTo = Number(upToSequence);
  const askedOrdinals = [...new Set(sequences.map(Number))];
  const { lastSequence } = await engine.store.read((tx) => readMailbox(tx, agentId));
  if (Math.max(upTo, ...askedOrdinals) > lastSequence) {
    throw invalid("up_to_sequence", `is beyond the newest message, which is ${lastSequence}`);
  }
  for (let more = true; more; ) {
    more = await engine.store.write(async (tx) => {
      const waiting = upTo === 0 ? [] : await waitingMessages(tx, agentId, upTo, ACKNOWLEDGE_BATCH);
      const batch = [
        ...waiting.map(({ sequence }) => sequence),
        ...askedOrdinals.splice(0, ACKNOWLEDGE_BATCH),
      ];
      for (const sequence of batch) {
        const messageId = await acknowledge(tx, agentId, sequence);
        const stored = messageId === undefined ? undefined : await readMessage(tx, messageId);
        if (stored?.message?.kind.case === "delegationNotice")
          await leaseToInbox(tx, cap, stored.taskId, agentId);
      }
      return waiting.length === ACKNOWLEDGE_BATCH || askedOrdinals.length > 0;
    });
  }
  const { waiting } = await engine.store.read((tx) => readMailbox(tx, agentId));
  return { unacknowledgedCount: BigInt(waiting) };
}

/** Yields the messages of an inbox after a cursor, and then each new message. */
export async function* watchInbox(
  cap: CapContext,
  { agentId, afterSequence, sendStart }: WatchInboxRequest,
  context: HandlerContext,
): AsyncGenerator<{ message?: InboxMessage }, void, undefined> {
  await requireOwn(cap, agentId, context);
  const { engine, timers, pollMs, stopping } = cap;
  const after = Number(afterSequence);
  const { lastSequence, firstSequence } = await engine.store.read((tx) => readMailbox(tx, agentId));
  requireKept(agentId, after, firstSequence);
  if (after > lastSequence)
    throw invalid("after_sequence", `is beyond the newest message, which is ${lastSequence}`);
  if (sendStart) yield {};
  const link = linkSignals(context.signal, stopping);
  const stopBeating = beat(cap, agentId);
  try {
    const log = follow({
      read: (from: number, limit) => engine.store.read((tx) => readInbox(tx, agentId, from, limit)),
      position: ({ position }) => position,
      after,
      wake: (listener) => cap.inboxWakeUps.on(agentId, listener),
      pollMs,
      timers,
      signal: link.signal,
      batch: WATCH_BATCH,
    });
    for await (const delivery of log) {
      const [message] = await engine.store.read((tx) => toInboxMessages(tx, agentId, [delivery]));
      if (message !== undefined) yield { message };
    }
  } finally {
    stopBeating();
    link.release();
  }
}

/**
 * Extends the leases of an inbox's tasks at intervals while the participant watches, even if no message arrives.
 *
 * @returns the function that stops the extensions
 */
function beat(cap: CapContext, agentId: string): () => void {
  let cancel = () => {};
  const again = () => {
    // If the extension of a lease fails, a later call extends that lease before it expires.
    extendInboxLeases(cap, agentId).catch(() => {});
    cancel = cap.timers.after(SILENCE_MS / 4, again);
  };
  again();
  return () => cancel();
}

/**
 * Returns the messages about a task that one participant sent or received. CAP calls them the participant's context.
 * (CAP "Parallelism")
 */
export async function listConversation(
  cap: CapContext,
  request: ListConversationRequest,
  context: HandlerContext,
) {
  const { taskId, agentId, pageSize: size } = request;
  await requireOwn(cap, agentId, context);
  const filters = { list: "conversation", taskId, agentId, after: request.afterSequence };
  const after = startOf(request, filters);
  return cap.engine.store.read(async (tx) => {
    const { items, more } = await readPage(pageSize(size), after, (from, limit) =>
      conversation(tx, taskId, agentId, from, limit),
    );
    if (items.length === 0 && !(await isParty(tx, rootIdOf(taskId), agentId))) throw taskNotFound(taskId);
    return {
      messages: items.map(({ stored: { number, messageId, receiveMs, message, origin, organization } }) => ({
        sequence: BigInt(number),
        messageId,
        receiveTime: toTimestamp(receiveMs),
        origin,
        organization,
        ...(message && { message }),
      })),
      nextPageToken: more ? encodePageToken([items.at(-1)?.position ?? after], filters) : "",
    };
  });
}

/**
 * Returns the position after which a page starts. The page token contains the position; for the first page, the request
 * contains it.
 *
 * @throws DeputeError PAGE_TOKEN_INVALID
 */
function startOf(
  { afterSequence, pageToken }: { readonly afterSequence: bigint; readonly pageToken: string },
  filters: PageFilters,
): number {
  const [position] = decodePageToken(pageToken, filters) ?? [];
  return Number(position ?? afterSequence);
}

/**
 * Requires that the caller may act for the agent.
 *
 * @throws DeputeError the errors of Participants.identify and Participants.self
 */
async function requireOwn(
  { participants }: CapContext,
  agentId: string,
  context: HandlerContext,
): Promise<void> {
  await participants.self(agentId, await participants.identify(context), context);
}

/**
 * Refuses a cursor if the store has purged messages after it. The refusal informs the reader of the gap. The cursor 0
 * is always allowed.
 *
 * @throws DeputeError EVENTS_PURGED
 */
function requireKept(agentId: string, after: number, firstSequence: number): void {
  if (after === 0 || after >= firstSequence - 1) return;
  throw new DeputeError(
    ErrorReason.EVENTS_PURGED,
    "the platform has purged these messages: begin at first_sequence",
    {
      metadata: { agent: agentId, first_sequence: String(firstSequence) },
    },
  );
}

async function toInboxMessages(
  tx: ReadTx,
  agentId: string,
  deliveries: readonly Delivery[],
): Promise<InboxMessage[]> {
  const messages: InboxMessage[] = [];
  for (const { position, isAcknowledged, stored } of deliveries) {
    const { messageId, receiveMs, message, claimed, origin, taskId, rootId, organization } = stored;
    const hasPart = isRole(agentId) || (await isParty(tx, rootId, agentId));
    messages.push(
      create(InboxMessageSchema, {
        sequence: BigInt(position),
        messageId,
        receiveTime: toTimestamp(receiveMs),
        origin,
        organization: hasPart ? organization : "",
        acknowledged: isAcknowledged,
        engineTaskId: hasPart ? ((await readCapTask(tx, taskId))?.taskId ?? "") : "",
        ...(message && { message }),
        ...(claimed !== undefined && { claimedTimestamp: claimed }),
      }),
    );
  }
  return messages;
}
