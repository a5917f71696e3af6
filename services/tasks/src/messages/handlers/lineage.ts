import { create } from "@bufbuild/protobuf";
import type { HandlerContext } from "@connectrpc/connect";
import {
  type LineageMessage,
  LineageMessageSchema,
  type LineageTask,
  LineageTaskSchema,
  MessageEffect,
  type TraceLineageRequest,
} from "@depute/contracts/depute/tasks/v1/message_service_pb";
import { TaskStatus } from "@depute/contracts/depute/tasks/v1/task_pb";
import { toTimestamp } from "@depute/core";
import { type Identity, mayActFor } from "@depute/service";
import type { ReadTx } from "@depute/store";
import { asCaller, isVisible, type TaskEngine, taskNotFound } from "../../core/index.ts";
import { lineageMermaid, lineageText } from "../rules/lineage.ts";
import { kindOf, TYPES, wordsOf } from "../rules/message.ts";
import { ORCHESTRATOR, USER } from "../rules/participant.ts";
import { parentIdOf, rootIdOf } from "../rules/task-id.ts";
import { readLineage } from "../store/lineage-rows.ts";
import { newestMessages, type StoredMessage } from "../store/message-rows.ts";
import { type Known, tasksOfLineage } from "../store/task-rows.ts";
import type { CapContext } from "../work/context.ts";

/** Maximum number of messages in a response. The response contains the newest messages. */
const MAX_SHOWN = 2000;

/** Maximum number of tasks in a response. */
const MAX_TASKS = 2000;

/** Maximum length in characters of an excerpt from a message. */
const MAX_EXCERPT = 200;

/**
 * Returns the tree that contains a task, with its messages, as data, as text and as a diagram. (CAP "Auditable
 * Workflow")
 */
export async function traceLineage(
  cap: CapContext,
  { taskId }: TraceLineageRequest,
  context: HandlerContext,
) {
  const identity = await cap.participants.identify(context);
  const rootId = rootIdOf(taskId);
  return cap.engine.store.read(async (tx) => {
    if ((await readLineage(tx, rootId)) === undefined) throw taskNotFound(taskId);
    const tasks = await knownTasks(tx, cap.engine, rootId);
    const caller = asCaller(identity);
    const roles = rolesOf(cap, identity);
    const isSeen = identity.local || roles.size > 0 || tasks.some(({ record }) => isVisible(caller, record));
    if (!isSeen) throw taskNotFound(taskId);
    const ownRoles = new Set([...roles, ...ownAgents(tasks, identity)]);
    const messages = await newestMessages(tx, rootId, MAX_SHOWN + 1);
    const shownMessages = messages.slice(-MAX_SHOWN);
    const seesWords = (stored: StoredMessage) =>
      identity.local ||
      ownRoles.has(stored.senderId) ||
      (ownRoles.has(stored.recipientId) && !isHeld(stored));
    const root = buildTree(rootId, tasks, shownMessages, {
      seesWords,
      seesTask: ({ record }) => isVisible(caller, record),
    });
    return {
      root,
      text: lineageText(root),
      mermaid: lineageMermaid(root),
      truncated: messages.length > MAX_SHOWN,
    };
  });
}

async function knownTasks(tx: ReadTx, engine: TaskEngine, rootId: string): Promise<Known[]> {
  const mailTasks: Known[] = [];
  for (const cap of await tasksOfLineage(tx, rootId, MAX_TASKS)) {
    const record = await engine.find(tx, cap.taskId);
    if (record !== undefined) mailTasks.push({ cap, record });
  }
  return mailTasks;
}

/**
 * Whether a message submitted a result to an overseer. After the approval, the platform sends the recipient a second
 * message.
 */
function isHeld({ type, effect }: StoredMessage): boolean {
  return type === TYPES.message && effect === MessageEffect.SUBMITTED;
}

/** Returns the roles in which the caller may act. */
function rolesOf({ participants }: CapContext, identity: Identity): Set<string> {
  const roles = [USER, ORCHESTRATOR].filter((role) =>
    participants.principalsOf(role).some((principal) => mayActFor(identity, principal)),
  );
  return new Set(roles);
}

/**
 * Returns the caller's agents in the lineage. An agent counts if the caller was the agent's principal when the task was
 * created.
 */
function ownAgents(tasks: readonly Known[], identity: Identity): string[] {
  return tasks.flatMap(({ cap, record }) => [
    ...(mayActFor(identity, record.agentPrincipal) ? [cap.agentId] : []),
    ...(mayActFor(identity, record.task.delegator) ? [cap.delegatorId] : []),
    ...(record.task.overseerId !== "" && mayActFor(identity, record.overseerPrincipal)
      ? [record.task.overseerId]
      : []),
  ]);
}

interface Sight {
  seesWords(message: StoredMessage): boolean;
  seesTask(task: Known): boolean;
}

function buildTree(
  rootId: string,
  tasks: readonly Known[],
  messages: readonly StoredMessage[],
  sight: Sight,
): LineageTask {
  const root = create(LineageTaskSchema, { taskId: rootId });
  const nodes = new Map<string, LineageTask>([[rootId, root]]);
  for (const knownTask of tasks) {
    const { capTaskId } = knownTask.cap;
    const node = capTaskId === rootId ? root : create(LineageTaskSchema, { taskId: capTaskId });
    Object.assign(node, taskPart(knownTask, sight.seesTask(knownTask)));
    nodes.set(capTaskId, node);
  }
  for (const [id, node] of nodes) {
    if (id !== rootId) (nodes.get(parentIdOf(id)) ?? root).tasks.push(node);
  }
  // A refused notice created no task, so the lineage shows the notice at its nearest existing ancestor.
  for (const message of messages)
    nearest(nodes, message.taskId, root).messages.push(toLineage(message, sight));
  return root;
}

function nearest(nodes: ReadonlyMap<string, LineageTask>, taskId: string, root: LineageTask): LineageTask {
  for (let id = taskId; id !== ""; id = parentIdOf(id)) {
    const node = nodes.get(id);
    if (node !== undefined) return node;
  }
  return root;
}

function taskPart({ cap, record: { task } }: Known, isSeen: boolean): Partial<LineageTask> {
  return {
    engineTaskId: cap.taskId,
    delegatorId: cap.delegatorId,
    agentId: cap.agentId,
    overseerId: task.overseerId,
    organization: task.organization,
    status: task.status ?? TaskStatus.UNSPECIFIED,
    reviewedTaskId: cap.reviewsId,
    contextSummary: isSeen ? task.description : "",
    createTime: toTimestamp(cap.createMs),
    ...(task.endTime && { endTime: task.endTime }),
  };
}

function toLineage(stored: StoredMessage, { seesWords }: Sight): LineageMessage {
  const { number, type, senderId, recipientId, receiveMs, origin, effect, errorCode, reason, message } =
    stored;
  const { carries, rootId } = stored;
  const words = message === undefined ? undefined : wordsOf(kindOf(message));
  const excerpt = words !== undefined && seesWords(stored) ? words.text : "";
  return create(LineageMessageSchema, {
    sequence: BigInt(number),
    messageType: type,
    senderId,
    recipientId,
    receiveTime: toTimestamp(receiveMs),
    origin,
    effect,
    errorCode,
    reason,
    excerpt: Array.from(excerpt).slice(0, MAX_EXCERPT).join(""),
    attachmentCount: words?.attachments.length ?? 0,
    carriesHeldResult: carries !== "",
    heldTaskId: rootIdOf(carries) === rootId ? carries : "",
  });
}
