import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import { CommandError, EXIT } from "../exit-codes.ts";
import { enumName, valueAt } from "../print/cells.ts";
import { jsonText } from "../print/documents.ts";
import type { Invocation } from "../table/command.ts";
import { TASK_COLUMNS } from "../table/parameters.ts";
import { type Connection, connected, isInterrupted } from "./connection.ts";
import { readCredential } from "./files.ts";
import { type Form, ItemPrinter, isDocument, printDocument, remark, write } from "./output.ts";
import { ProgressBar } from "./progress-bar.ts";
import { requestFrom } from "./request.ts";

const STATUS_PREFIX = "TASK_STATUS_";

/**
 * If a stream ends before the task has ended, the command waits this many milliseconds before it opens the stream
 * again. The command gives up after MAX_REOPENINGS consecutive attempts without an event.
 */
const REOPEN_MS = 500;
const MAX_REOPENINGS = 20;

/** `depute delegate`. */
export async function delegate(invocation: Invocation): Promise<number> {
  const { values } = invocation;
  const request = requestFrom(invocation);
  const draft = (request.draft ?? {}) as JsonObject;
  if (draft.agentId === undefined && draft.capabilityId === undefined) {
    throw new CommandError("a task needs --agent or --capability; see depute delegate --help");
  }
  const tokenFile = values["worker-token"];
  if (tokenFile !== undefined) draft.workerToken = readCredential(String(tokenFile));
  const form = values.output as Form;
  return connected(invocation, async (connection) => {
    const answer = await connection.call("tasks", "createTask", { ...request, draft });
    const task = (answer.task ?? {}) as JsonObject;
    if (values.watch === true) return watched(connection, String(task.id), form);
    if (isDocument(form)) await printDocument(form, task);
    else await new ItemPrinter(form, { columns: TASK_COLUMNS }).print([task]);
    return EXIT.ok;
  });
}

/** `depute tasks wait TASK`. */
export async function wait(invocation: Invocation): Promise<number> {
  const form = invocation.values.output as Form;
  return connected(invocation, (connection) => watched(connection, String(invocation.values.TASK), form));
}

/**
 * Shows the progress of a task until the task ends, and then the task's output. Ctrl-C ends only the command, not the
 * task.
 *
 * @returns the exit code; 130 after Ctrl-C
 * @throws CommandError if the task ended without being completed
 */
async function watched(connection: Connection, taskId: string, form: Form): Promise<number> {
  const bar = new ProgressBar(process.stderr);
  try {
    await followToEnd(connection, taskId, bar);
  } catch (error) {
    bar.clear();
    if (!isInterrupted(error, connection)) throw error;
    remark(`The task ${taskId} continues; depute tasks cancel ${taskId} cancels it.`);
    return 130;
  }
  bar.clear();
  const { task } = await connection.call("tasks", "getTask", { taskId });
  return printEnd(task as JsonObject, form);
}

async function followToEnd(connection: Connection, taskId: string, bar: ProgressBar): Promise<void> {
  const progressLine = { status: "pending", processed: 0, total: 0, message: "" };
  let afterSequence = "0";
  for (let reopenings = 0; reopenings <= MAX_REOPENINGS; reopenings++) {
    bar.draw(progressLine);
    for await (const { taskEvent } of connection.stream("tasks", "watchTask", { taskId, afterSequence })) {
      if (taskEvent === undefined) continue;
      const event = taskEvent as JsonObject;
      reopenings = 0;
      afterSequence = String(event.sequence ?? afterSequence);
      progressLine.status = enumName(String(event.status), STATUS_PREFIX);
      if (event.progress !== undefined)
        Object.assign(progressLine, { processed: 0, total: 0, message: "" }, event.progress);
      bar.draw(progressLine);
    }
    const { task } = await connection.call("tasks", "getTask", { taskId });
    if ((task as JsonObject).endTime !== undefined) return;
    await new Promise((resolve) => setTimeout(resolve, REOPEN_MS));
  }
  throw new CommandError(
    `the platform repeatedly closes the stream of ${taskId}; run depute tasks describe ${taskId}`,
    EXIT.unreachable,
  );
}

async function printEnd(task: JsonObject, form: Form): Promise<number> {
  const status = enumName(String(task.status), STATUS_PREFIX);
  const isCompleted = status === "completed";
  if (isDocument(form)) await printDocument(form, task);
  else if (isCompleted) write(outputText(valueAt(task, "output.full") ?? null));
  if (isCompleted) return EXIT.ok;
  const { reason = "", message = "" } = (task.failure ?? task.cancellation ?? {}) as Record<string, string>;
  const why = [reason, message].filter((each) => each !== "").join(": ");
  throw new CommandError(
    `the task ${task.id} is ${status}${why === "" ? "" : ` (${why})`}; see depute explain ${task.id}`,
    EXIT.noResult,
  );
}

function outputText(output: JsonValue): string {
  return jsonText(output, process.stdout.isTTY ? 2 : 0);
}
