import { timestampDate } from "@bufbuild/protobuf/wkt";
import type { TaskEvent } from "@depute/contracts/depute/tasks/v1/task_event_pb";
import { TaskStatus } from "@depute/contracts/depute/tasks/v1/task_pb";
import { type Plain, plain } from "./plain.ts";

/** The name of a status, for example `RUNNING`. */
export type TaskState = keyof typeof TaskStatus;

type Payload = Exclude<TaskEvent["payload"], { case: undefined }>;

/** An event of a task. `type` is the kind of event; `data` is the event of depute.tasks.v1.TaskEvent in plain form. */
export type TaskUpdate = {
  [Each in Payload as Each["case"]]: {
    readonly type: Each["case"];
    readonly data: Plain<Each["value"]>;
    /** Position among the task's events, starting at 1 without gaps. */
    readonly sequence: number;
    readonly time: Date;
    /** The status of the task after the event. */
    readonly status: TaskState;
  };
}[Payload["case"]];

const STATES = new Map<number, TaskState>(
  Object.entries(TaskStatus).map(([name, number]) => [number, name as TaskState]),
);

export function stateOf(status: TaskStatus): TaskState {
  return STATES.get(status) ?? "UNSPECIFIED";
}

/**
 * Converts an event to its plain form.
 *
 * @returns undefined for an event that this version does not know
 */
export function updateOf({ payload, sequence, eventTime, status }: TaskEvent): TaskUpdate | undefined {
  if (payload.case === undefined) return undefined;
  return {
    type: payload.case,
    data: plain(payload.value),
    sequence: Number(sequence),
    time: eventTime === undefined ? new Date(0) : timestampDate(eventTime),
    status: stateOf(status),
  } as TaskUpdate;
}
