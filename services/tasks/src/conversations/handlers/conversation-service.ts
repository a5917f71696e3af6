import { create } from "@bufbuild/protobuf";
import type { ServiceImpl } from "@connectrpc/connect";
import {
  ConversationSchema,
  type ConversationService,
  type ListConversationsRequest,
} from "@depute/contracts/depute/tasks/v1/conversation_service_pb";
import { type TaskEvent, TaskEventSchema } from "@depute/contracts/depute/tasks/v1/task_event_pb";
import { TaskStatus } from "@depute/contracts/depute/tasks/v1/task_pb";
import { decodePageToken, encodePageToken, fromTimestamp, pageSize } from "@depute/core";
import { AnswerRoom, bytesOf } from "@depute/service";
import type { ReadTx } from "@depute/store";
import { asCaller, isVisible, type TaskEngine, type TaskRecord, taskNotFound } from "../../core/index.ts";
import {
  type ConversationFilter,
  type ConversationPlace,
  countConversations,
  listConversations,
  newestPlaces,
} from "../store/rows.ts";
import { type WebhookContext, webhookCalls } from "./webhooks.ts";

/** Handles the calls about tasks with messages. */
export function conversationService(context: WebhookContext): ServiceImpl<typeof ConversationService> {
  return { ...reads(context), ...webhookCalls(context) };
}

/** Handles the calls that read tasks with their messages. */
function reads({
  engine,
  authority,
}: WebhookContext): Pick<ServiceImpl<typeof ConversationService>, "getConversation" | "listConversations"> {
  return {
    async getConversation({ taskId, agentId, maxMessages, maxPartials }, context) {
      const caller = asCaller(await authority.identify(context));
      return engine.store.read(async (tx) => {
        const record = await engine.find(tx, taskId);
        if (record === undefined || !isVisible(caller, record)) throw taskNotFound(taskId);
        if (agentId !== "" && record.task.agentId !== agentId) throw taskNotFound(taskId);
        const task = await engine.wholeTask(tx, record);
        const messages = await messagesOf(tx, engine, record, maxMessages);
        const partials = await partialsOf(tx, engine, record, maxPartials);
        return { conversation: { task, messages, partials } };
      });
    },

    async listConversations(request, context) {
      const { principal } = asCaller(await authority.identify(context));
      return engine.store.read((tx) => pageOf(tx, engine, principal, request));
    },
  };
}

async function pageOf(tx: ReadTx, engine: TaskEngine, delegator: string, request: ListConversationsRequest) {
  const { agentId, correlationId, awaitsAuthorization, updatedFrom, maxMessages, includeOutputs } = request;
  const statuses = request.statuses.filter((status) => status !== 0).toSorted((a, b) => a - b);
  const fromMs = updatedFrom && fromTimestamp(updatedFrom);
  const filter: ConversationFilter = {
    delegator,
    agentId,
    correlationId,
    statuses,
    awaitsAuthorization,
    fromMs,
  };
  const filters = { ...filter };
  const size = pageSize(request.pageSize);
  const position = placeOf(decodePageToken(request.pageToken, filters));
  // Reads one more conversation than the page holds, to find out whether another page follows.
  const places = await listConversations(tx, filter, position, size + 1);
  const room = new AnswerRoom();
  const conversations = [];
  let last: ConversationPlace | undefined;
  for (const place of places.slice(0, size)) {
    const record = await engine.find(tx, place.taskId);
    if (record === undefined) continue;
    const task = includeOutputs ? await engine.wholeTask(tx, record) : record.task;
    const messages = await messagesOf(tx, engine, record, maxMessages);
    const conversation = create(ConversationSchema, { task, messages });
    if (!room.takes(bytesOf(ConversationSchema, conversation))) break;
    conversations.push(conversation);
    last = place;
  }
  const isWhole = conversations.length === places.length;
  return {
    conversations,
    nextPageToken:
      isWhole || last === undefined ? "" : encodePageToken([last.updateMs, last.taskId], filters),
    totalSize: await countConversations(tx, filter),
  };
}

function placeOf(position: ReturnType<typeof decodePageToken>): ConversationPlace | undefined {
  const [updateMs, taskId] = position ?? [];
  return typeof updateMs === "number" && typeof taskId === "string" ? { updateMs, taskId } : undefined;
}

/** Returns the newest `limit` events of a task whose payload contains a message, oldest first. */
async function messagesOf(
  tx: ReadTx,
  engine: TaskEngine,
  { task: { id, isConversation } }: TaskRecord,
  limit: number,
): Promise<TaskEvent[]> {
  if (!isConversation || limit === 0) return [];
  const events: TaskEvent[] = [];
  for (const sequence of await newestPlaces(tx, "conversation_messages", id, limit)) {
    events.push(...(await engine.events(tx, id, sequence - 1n, 1)));
  }
  return events.reverse();
}

/** Maximum total size of the preliminary results in a response, in bytes. */
const MAX_PARTIALS_BYTES = 1024 * 1024;

/** Returns the newest `limit` preliminary results of a task, oldest first; none for a completed task. */
async function partialsOf(
  tx: ReadTx,
  engine: TaskEngine,
  { task: { id, isConversation, status } }: TaskRecord,
  limit: number,
): Promise<TaskEvent[]> {
  if (!isConversation || limit === 0 || status === TaskStatus.COMPLETED) return [];
  const events: TaskEvent[] = [];
  let bytes = 0;
  for (const sequence of await newestPlaces(tx, "conversation_partials", id, limit)) {
    const [event] = await engine.events(tx, id, sequence - 1n, 1);
    if (event === undefined) continue;
    bytes += bytesOf(TaskEventSchema, event);
    if (bytes > MAX_PARTIALS_BYTES) break;
    events.push(event);
  }
  return events.reverse();
}
