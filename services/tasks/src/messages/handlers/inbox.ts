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
import { DeputeError, ErrorReason, invalid, pageSize, toTimestamp } from "@depute/core";
import { follow, linkSignals } from "@depute/service";
import type { ReadTx } from "@depute/store";
import { taskNotFound } from "../../core/index.ts";
import { isRole } from "../rules/participant.ts";
import { rootIdOf } from "../rules/task-id.ts";
import {
  acknowledge,
  conversation,
  type Delivery,
  isParty,
  readInbox,
  readMailbox,
  readMessage,
  waitingMessages,
} from "../store/message-rows.ts";
import { readCapTask } from "../store/task-rows.ts";
import { holdIfOwn, SILENCE_MS, signOfLife } from "../work/worker.ts";
import type { CapContext } from "./context.ts";
import { readPage } from "./pages.ts";

/** Messages that a watcher holds in memory at once. */
const WATCH_BATCH = 8;

/** Messages that one transaction acknowledges. */
const ACKNOWLEDGE_BATCH = 200;

/** A page of an inbox. */
export async function listInbox(cap: CapContext, request: ListInboxRequest, context: HandlerContext) {
  const { agentId, unacknowledgedOnly } = request;
  await requireOwn(cap, agentId, context);
  await signOfLife(cap, agentId);
  const after = Number(request.afterSequence);
  return cap.engine.store.read(async (tx) => {
    const { lastSequence, firstSequence } = await readMailbox(tx, agentId);
    requireKept(agentId, after, firstSequence);
    const { items, more } = await readPage(pageSize(request.pageSize), after, (from, limit) =>
      readInbox(tx, agentId, from, limit, unacknowledgedOnly),
    );
    return {
      messages: await toInboxMessages(tx, agentId, items),
      nextAfterSequence: BigInt(more ? (items.at(-1)?.position ?? after) : 0),
      lastSequence: BigInt(lastSequence),
    };
  });
}

/** Notes that messages were read. Whoever acknowledges the notice of a task accepts the task. */
export async function acknowledgeMessages(
  cap: CapContext,
  { agentId, upToSequence, sequences }: AcknowledgeMessagesRequest,
  context: HandlerContext,
) {
  await requireOwn(cap, agentId, context);
  await signOfLife(cap, agentId);
  const { engine } = cap;
  const upTo = Number(upToSequence);
  const asked = [...new Set(sequences.map(Number))];
  const { lastSequence } = await engine.store.read((tx) => readMailbox(tx, agentId));
  if (Math.max(upTo, ...asked) > lastSequence) {
    throw invalid("up_to_sequence", `is beyond the newest message, which is ${lastSequence}`);
  }
  for (let more = true; more; ) {
    more = await engine.store.write(async (tx) => {
      const waiting = upTo === 0 ? [] : await waitingMessages(tx, agentId, upTo, ACKNOWLEDGE_BATCH);
      const batch = [...waiting.map(({ sequence }) => sequence), ...asked.splice(0, ACKNOWLEDGE_BATCH)];
      for (const sequence of batch) {
        const messageId = await acknowledge(tx, agentId, sequence);
        const stored = messageId === undefined ? undefined : await readMessage(tx, messageId);
        if (stored?.message?.kind.case === "delegationNotice")
          await holdIfOwn(tx, cap, stored.taskId, agentId);
      }
      return waiting.length === ACKNOWLEDGE_BATCH || asked.length > 0;
    });
  }
  const { waiting } = await engine.store.read((tx) => readMailbox(tx, agentId));
  return { unacknowledged: BigInt(waiting) };
}

/** An inbox after a cursor, then what comes. */
export async function* watchInbox(
  cap: CapContext,
  { agentId, afterSequence, tellStart }: WatchInboxRequest,
  context: HandlerContext,
): AsyncGenerator<{ message?: InboxMessage }, void, undefined> {
  await requireOwn(cap, agentId, context);
  const { engine, timers, pollMs, stopping } = cap;
  const after = Number(afterSequence);
  const { lastSequence, firstSequence } = await engine.store.read((tx) => readMailbox(tx, agentId));
  requireKept(agentId, after, firstSequence);
  if (after > lastSequence)
    throw invalid("after_sequence", `is beyond the newest message, which is ${lastSequence}`);
  if (tellStart) yield {};
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

/** Who watches its inbox is there, also while nothing comes. @returns how to stop */
function beat(cap: CapContext, agentId: string): () => void {
  let cancel = () => {};
  const again = () => {
    // A lease that could not be extended now is extended the next time, long before it is over.
    signOfLife(cap, agentId).catch(() => {});
    cancel = cap.timers.after(SILENCE_MS / 4, again);
  };
  again();
  return () => cancel();
}

/** What one participant sent and got on a task: the context of an instance of its own. (CAP "Parallelism") */
export async function listConversation(
  cap: CapContext,
  { taskId, agentId, afterNumber, pageSize: size }: ListConversationRequest,
  context: HandlerContext,
) {
  await requireOwn(cap, agentId, context);
  return cap.engine.store.read(async (tx) => {
    const after = Number(afterNumber);
    const { items, more } = await readPage(pageSize(size), after, (from, limit) =>
      conversation(tx, taskId, agentId, from, limit),
    );
    if (items.length === 0 && !(await isParty(tx, rootIdOf(taskId), agentId))) throw taskNotFound(taskId);
    return {
      messages: items.map(({ stored: { number, messageId, receiveMs, message, origin } }) => ({
        number: BigInt(number),
        messageId,
        receiveTime: toTimestamp(receiveMs),
        origin,
        ...(message && { message }),
      })),
      nextAfterNumber: BigInt(more ? (items.at(-1)?.position ?? after) : 0),
    };
  });
}

/** @throws DeputeError AGENT_NOT_FOUND, CALLER_NOT_ALLOWED */
async function requireOwn(
  { participants }: CapContext,
  agentId: string,
  context: HandlerContext,
): Promise<void> {
  await participants.self(agentId, await participants.identify(context), context);
}

/** A gap is said, never passed over. */
function requireKept(agentId: string, after: number, firstSequence: number): void {
  if (after === 0 || after >= firstSequence - 1) return;
  throw new DeputeError(ErrorReason.EVENTS_PURGED, "these messages are no longer kept", {
    metadata: { agent: agentId, first_sequence: String(firstSequence) },
  });
}

async function toInboxMessages(
  tx: ReadTx,
  agentId: string,
  deliveries: readonly Delivery[],
): Promise<InboxMessage[]> {
  const messages: InboxMessage[] = [];
  for (const { position, isAcknowledged, stored } of deliveries) {
    const { messageId, receiveMs, message, claimed, origin, taskId, rootId } = stored;
    const hasPart = isRole(agentId) || (await isParty(tx, rootId, agentId));
    messages.push(
      create(InboxMessageSchema, {
        sequence: BigInt(position),
        messageId,
        receiveTime: toTimestamp(receiveMs),
        origin,
        acknowledged: isAcknowledged,
        engineTaskId: hasPart ? ((await readCapTask(tx, taskId))?.taskId ?? "") : "",
        ...(message && { message }),
        ...(claimed !== undefined && { claimedTimestamp: claimed }),
      }),
    );
  }
  return messages;
}
