import { fromJson } from "@bufbuild/protobuf";
import { ValueSchema } from "@bufbuild/protobuf/wkt";
import type { Task, TaskQuestion } from "@depute/contracts/depute/tasks/v1/task_pb";
import { ErrorReason } from "@depute/core";
import type { ElicitForTask } from "@depute/mcp";
import { refusalIn } from "../../edge/fault.ts";
import type { WireCall } from "../../edge/wire-call.ts";
import { type ChangeDeps, nextState } from "./changes.ts";
import { answerIn, elicitationOf, questionKey } from "./mcp-task.ts";
import type { OwnClients } from "./methods.ts";

/** The question of a task that waits for input. */
export interface OpenQuestion {
  readonly key: string;
  readonly question: TaskQuestion;
}

/** Returns the open question of a task; undefined if the task does not wait for input. */
export function openQuestion(task: Task | undefined): OpenQuestion | undefined {
  if (task?.question === undefined || task.endTime !== undefined) return undefined;
  return { key: questionKey(task.id, task.questionTime), question: task.question };
}

/** The credentials of an answer. */
type Answering = Pick<WireCall, "asCaller" | "aside">;

/** The error reasons of `provideInput` that mean that the question is no longer open. */
const ANSWERED: ReadonlySet<ErrorReason> = new Set([
  ErrorReason.REQUEST_ID_REUSED,
  ErrorReason.TASK_STATE_CONFLICT,
]);

/**
 * Answers an open question. Ignores the answer if the question was answered before.
 *
 * @param response the result of the elicitation
 * @param call the request that carries the answer; its credentials authorize the answer
 * @returns the task after the answer
 * @throws the errors of the tasks service
 */
export async function provideAnswer(
  tasks: OwnClients["tasks"],
  taskId: string,
  { key, question }: OpenQuestion,
  response: unknown,
  call: Answering,
): Promise<Task | undefined> {
  const input = fromJson(ValueSchema, answerIn(response, question));
  try {
    return (await tasks.provideInput({ taskId, requestId: `mcp/${key}`, input }, call.asCaller)).task;
  } catch (thrown) {
    if (ANSWERED.has(refusalIn(thrown).reason)) return (await tasks.getTask({ taskId }, call.aside)).task;
    throw thrown;
  }
}

/**
 * Waits for the end of a task, and asks the client each question of the task. The credentials of the client's response
 * authorize the answer.
 *
 * @param task the task, which the caller has read with its own credentials
 * @returns the task at its end
 * @throws the errors of the tasks service
 */
export async function answeredUntilEnd(
  deps: ChangeDeps,
  task: Task,
  call: WireCall,
  elicit: ElicitForTask<WireCall>,
): Promise<Task> {
  let current = task;
  while (current.endTime === undefined) {
    const open = openQuestion(current);
    current =
      open === undefined
        ? await nextState(deps, current, call, call.signal)
        : await askClient(deps, current, open, call, elicit);
  }
  return current;
}

/** Asks the client an open question. Withdraws the question when the task no longer waits for its answer. */
async function askClient(
  deps: ChangeDeps,
  task: Task,
  open: OpenQuestion,
  call: WireCall,
  elicit: ElicitForTask<WireCall>,
): Promise<Task> {
  const closed = new AbortController();
  const signal = AbortSignal.any([closed.signal, call.signal]);
  const other = untilOther(deps, task, open, call, signal);
  const answered = elicit({ params: elicitationOf(open.question), signal }).then(
    async ({ response, call: responding }) =>
      (await provideAnswer(deps.tasks, task.id, open, response, during(call, responding))) ?? task,
    // The client sent no answer, but another client can still answer with the tool `answer`.
    () => other,
  );
  try {
    return await Promise.race([answered, other]);
  } finally {
    closed.abort();
    // Both promises end now. Their errors were thrown above, or follow from the abort.
    await Promise.allSettled([answered, other]);
  }
}

/** Returns the credentials of one request with the lifetime of another, because a response has no answer to wait for. */
function during({ signal }: WireCall, { asCaller, aside }: WireCall): Answering {
  return {
    get asCaller() {
      return { ...asCaller, signal };
    },
    aside: { ...aside, signal },
  };
}

/** Waits until the task no longer waits for the answer to this question. */
async function untilOther(
  deps: ChangeDeps,
  task: Task,
  { key }: OpenQuestion,
  call: WireCall,
  signal: AbortSignal,
): Promise<Task> {
  let current = task;
  while (openQuestion(current)?.key === key) current = await nextState(deps, current, call, signal);
  return current;
}
