import type { JsonObject } from "@bufbuild/protobuf";
import { cellsOf } from "../print/cells.ts";
import { oneLine } from "../print/safe-text.ts";
import { layoutFor } from "../print/terminal.ts";
import { cut } from "../print/width.ts";
import type { Invocation } from "../table/command.ts";
import { type Connection, connected } from "./connection.ts";
import { type Form, isDocument, printDocument, remark, write } from "./output.ts";

/** Maximum number of tasks that the command reads for a tree. */
const MAX_TASKS = 5_000;
const PAGE = 100;

/** A task and the branches of its child tasks. */
export interface Branch {
  readonly task: JsonObject;
  readonly children: Branch[];
}

/** `depute tasks tree TASK`. */
export async function tree(invocation: Invocation): Promise<void> {
  const form = invocation.values.output as Form;
  await connected(invocation, async (connection) => {
    const { task } = await connection.call("tasks", "getTask", { taskId: String(invocation.values.TASK) });
    const top = task as JsonObject;
    const { tasks, hasMore } = await below(connection, top);
    const root = branchOf(top, tasks);
    if (isDocument(form)) await printDocument(form, asJson(root));
    else write(treeLines(root, Date.now()).join("\n"));
    if (hasMore) remark(`There are more than ${MAX_TASKS} tasks; the tree shows the first.`);
  });
}

/** Returns the tasks below the root task of `top`, up to MAX_TASKS. `branchOf` then selects the tasks below `top`. */
async function below(connection: Connection, top: JsonObject) {
  const tasks: JsonObject[] = [];
  const rootTaskId = String(top.rootTaskId || top.id);
  let pageToken = "";
  do {
    const answer = await connection.call("tasks", "listTasks", { rootTaskId, pageSize: PAGE, pageToken });
    tasks.push(...((answer.tasks ?? []) as JsonObject[]));
    pageToken = String(answer.nextPageToken ?? "");
  } while (pageToken !== "" && tasks.length < MAX_TASKS);
  return { tasks, hasMore: pageToken !== "" };
}

/** Builds the tree of `top` and the tasks below it. */
export function branchOf(top: JsonObject, tasks: readonly JsonObject[]): Branch {
  const branches = new Map(tasks.map((task) => [String(task.id), { task, children: [] as Branch[] }]));
  const root: Branch = { task: top, children: [] };
  branches.set(String(top.id), root);
  const inOrder = [...branches.values()].sort((a, b) =>
    String(a.task.createTime).localeCompare(String(b.task.createTime)),
  );
  for (const branch of inOrder) {
    if (branch !== root) branches.get(String(branch.task.parentTaskId))?.children.push(branch);
  }
  return root;
}

function asJson({ task, children }: Branch): JsonObject {
  return { task, children: children.map(asJson) };
}

/**
 * Draws a tree as lines of text.
 *
 * @param now milliseconds since the Unix epoch
 */
export function treeLines(root: Branch, now: number): string[] {
  const { columns, paint } = layoutFor(process.stdout);
  const lines: string[] = [];
  // Uses a stack instead of recursion, because the platform may answer with a tree of any depth.
  const open = [{ branch: root, lead: "", turn: "" }];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const { branch, lead, turn } = next;
    const [status = { text: "" }, age = { text: "" }] = cellsOf(
      branch.task,
      [
        ["", "status", "enum:TASK_STATUS_"],
        ["", "createTime", "age"],
      ],
      now,
    );
    const { id, agentId = "", capabilityId = "" } = branch.task;
    const work = [agentId, capabilityId].filter((each) => each !== "").join(" ");
    const line = `${lead}${turn}${oneLine(String(id))} ${status.text} ${oneLine(work)} ${age.text}`;
    const fitting = columns === undefined ? line : cut(line, columns);
    lines.push(status.color === undefined ? fitting : paint(fitting, status.color));
    const inner = lead + (turn === "" ? "" : turn.startsWith("└") ? "   " : "│  ");
    const children = branch.children.map((child, index, all) => ({
      branch: child,
      lead: inner,
      turn: index === all.length - 1 ? "└─ " : "├─ ",
    }));
    open.push(...children.reverse());
  }
  return lines;
}
