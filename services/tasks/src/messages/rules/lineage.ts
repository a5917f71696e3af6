import {
  type LineageMessage,
  type LineageTask,
  MessageEffect,
  MessageEffectSchema,
  MessageOrigin,
} from "@depute/contracts/depute/tasks/v1/message_service_pb";
import { formatTime, fromTimestamp } from "@depute/core";
import { statusName } from "../../core/rules/index.ts";

/** Returns a lineage as text for people. Each task and each message has one line, indented by its depth in the tree. */
export function lineageText(root: LineageTask): string {
  return `${linesOf(root, "").join("\n")}\n`;
}

function linesOf(task: LineageTask, indent: string): string[] {
  const below = `${indent}  `;
  return [
    `${indent}${headOf(task)}`,
    ...task.messages.map((message) => `${below}${lineOf(message)}`),
    ...task.tasks.flatMap((child) => linesOf(child, below)),
  ];
}

function headOf({
  taskId,
  engineTaskId,
  delegatorId,
  agentId,
  overseerId,
  status,
  reviewedTaskId,
}: LineageTask) {
  if (engineTaskId === "") return `${taskId} (no task)`;
  const notes = [
    statusName(status),
    ...(overseerId === "" ? [] : [`overseer ${overseerId}`]),
    ...(reviewedTaskId === "" ? [] : [`reviews ${reviewedTaskId}`]),
  ];
  return `${taskId} ${delegatorId} -> ${agentId} (${notes.join(", ")})`;
}

function lineOf({
  receiveTime,
  messageType: type,
  senderId,
  recipientId,
  origin,
  effect,
  errorCode,
  reason,
  excerpt,
  carriesHeldResult,
  heldTaskId,
}: LineageMessage) {
  const time = receiveTime === undefined ? "" : `${formatTime(fromTimestamp(receiveTime))} `;
  const code = errorCode === 0 ? "" : ` ${errorCode}`;
  const by = ORIGINS[origin] ?? "";
  const ofTask = heldTaskId === "" ? "" : ` of ${heldTaskId}`;
  const heldNote = carriesHeldResult ? `, carries the held result${ofTask}` : "";
  const why = reason === "" ? "" : `: ${oneLine(reason)}`;
  const words = excerpt === "" ? "" : ` "${oneLine(excerpt)}"`;
  return `${time}${type} ${senderId} -> ${recipientId} [${effectName(effect)}${code}${by}${heldNote}]${why}${words}`;
}

/** The suffix that follows the effect in a lineage's text, for messages that the platform sent. */
const ORIGINS: Partial<Record<MessageOrigin, string>> = {
  [MessageOrigin.RELEASED]: ", released",
  [MessageOrigin.PLATFORM]: ", by the platform",
};

/** Returns the name of an effect for people, for example `changes_requested`. */
export function effectName(effect: MessageEffect): string {
  return (MessageEffectSchema.value[effect]?.name ?? "").replace("MESSAGE_EFFECT_", "").toLowerCase();
}

/**
 * Returns a lineage as a Mermaid flowchart. Tasks are boxes, delegations are arrows, and refusals are dotted arrows.
 * The chart omits participants' texts. It quotes ids, so that Mermaid parses no id as syntax.
 */
export function lineageMermaid(root: LineageTask): string {
  const lines = ["flowchart TD"];
  const tasks = flatten(root);
  const names = new Map(tasks.map(({ taskId }, index) => [taskId, `t${index}`]));
  for (const task of tasks) {
    const { taskId, agentId, status, engineTaskId } = task;
    const label = engineTaskId === "" ? [taskId] : [taskId, agentId, statusName(status)];
    lines.push(`  ${names.get(taskId)}["${label.map(quoted).join("<br/>")}"]`);
  }
  for (const task of tasks) {
    for (const child of task.tasks) {
      const verb = child.reviewedTaskId === "" ? "delegates" : "submits";
      lines.push(
        `  ${names.get(task.taskId)} -->|"${quoted(child.delegatorId)} ${verb}"| ${names.get(child.taskId)}`,
      );
    }
    task.messages
      .filter(({ effect }) => effect === MessageEffect.REFUSED)
      .forEach(({ senderId, messageType: type, errorCode }, index) => {
        const refusal = `${names.get(task.taskId)}r${index}`;
        lines.push(
          `  ${names.get(task.taskId)} -.->|"${quoted(senderId)}: ${quoted(type)}"| ${refusal}(("${errorCode}"))`,
        );
      });
  }
  return `${lines.join("\n")}\n`;
}

function flatten(task: LineageTask): LineageTask[] {
  return [task, ...task.tasks.flatMap(flatten)];
}

/** Quotes a text for a Mermaid string. */
function quoted(text: string): string {
  return text.replace(/[^A-Za-z0-9_.: -]/g, (char) => `#${char.codePointAt(0)};`);
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: what moves a terminal's cursor is taken out
const CONTROL = /[\u0000-\u001f\u007f-\u009f\u2028\u2029]+/g;

function oneLine(text: string): string {
  return text.replace(CONTROL, " ");
}
