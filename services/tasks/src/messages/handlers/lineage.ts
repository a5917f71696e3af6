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
import { newestMessages, readLineage, type StoredMessage } from "../store/message-rows.ts";
import { type Known, tasksOfLineage } from "../store/task-rows.ts";
import type { CapContext } from "./context.ts";

/** Messages of a lineage that are told, the newest ones. */
const MAX_TOLD = 2000;

/** Tasks of a lineage that are told. */
const MAX_TASKS = 2000;

/** Characters of a message's words that its sender and its recipient see. */
const MAX_EXCERPT = 200;

/** The tree that a task is in, with its messages; as text and as a diagram too. (CAP "Auditable Workflow") */
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
    const own = new Set([...roles, ...ownAgents(tasks, identity)]);
    const messages = await newestMessages(tx, rootId, MAX_TOLD + 1);
    const told = messages.slice(-MAX_TOLD);
    const seesWords = (stored: StoredMessage) =>
      identity.local || own.has(stored.senderId) || (own.has(stored.recipientId) && !isHeld(stored));
    const root = buildTree(rootId, tasks, told, {
      seesWords,
      seesTask: ({ record }) => isVisible(caller, record),
    });
    return {
      root,
      text: lineageText(root),
      mermaid: lineageMermaid(root),
      truncated: messages.length > MAX_TOLD,
    };
  });
}

async function knownTasks(tx: ReadTx, engine: TaskEngine, rootId: string): Promise<Known[]> {
  const known: Known[] = [];
  for (const cap of await tasksOfLineage(tx, rootId, MAX_TASKS)) {
    const record = await engine.find(tx, cap.taskId);
    if (record !== undefined) known.push({ cap, record });
  }
  return known;
}

/** Whether a message is a result that was handed in: whom it is for gets it when it is approved, as another message. */
function isHeld({ type, effect }: StoredMessage): boolean {
  return type === TYPES.message && effect === MessageEffect.SUBMITTED;
}

/** The roles that the caller acts as. */
function rolesOf({ participants }: CapContext, identity: Identity): Set<string> {
  const roles = [USER, ORCHESTRATOR].filter((role) =>
    participants.principalsOf(role).some((principal) => mayActFor(identity, principal)),
  );
  return new Set(roles);
}

/** The agents of the lineage that are the caller's, by who they were when the task was created. */
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
  for (const known of tasks) {
    const { capTaskId } = known.cap;
    const node = capTaskId === rootId ? root : create(LineageTaskSchema, { taskId: capTaskId });
    Object.assign(node, taskPart(known, sight.seesTask(known)));
    nodes.set(capTaskId, node);
  }
  for (const [id, node] of nodes) {
    if (id !== rootId) (nodes.get(parentIdOf(id)) ?? root).tasks.push(node);
  }
  // What was refused names tasks that never came to be: it stands with the task above.
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
    number: BigInt(number),
    type,
    senderId,
    recipientId,
    receiveTime: toTimestamp(receiveMs),
    origin,
    effect,
    errorCode,
    reason,
    excerpt: Array.from(excerpt).slice(0, MAX_EXCERPT).join(""),
    attachments: words?.attachments.length ?? 0,
    carriesHeldResult: carries !== "",
    heldTaskId: rootIdOf(carries) === rootId ? carries : "",
  });
}
