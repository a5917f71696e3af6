import type { Column, Command, Flags } from "./command.ts";
import { oneOf, TASK, TASK_COLUMNS, TASK_STATUSES, text } from "./parameters.ts";

const WIDE: readonly Column[] = [
  ["ATTEMPT", "attempt", "number"],
  ["DELEGATOR", "delegator"],
  ["PARENT", "parentTaskId"],
  ["COST", "usage.costMicrocents", "usd"],
];

const EVENTS: readonly Column[] = [
  ["SEQUENCE", "sequence"],
  ["TIME", "eventTime", "time"],
  ["STATUS", "status", "enum:TASK_STATUS_"],
  ["EVENT", "type"],
  ["DETAIL", "detail"],
];

const taskView = { item: "task", columns: TASK_COLUMNS, wide: WIDE };

/** The flags for the fields of a task that its delegator writes. */
export const DRAFT_FLAGS: Flags = {
  agent: text("draft.agentId", "agent that does the work"),
  capability: text("draft.capabilityId", "kind of the work; without an agent the platform chooses one"),
  input: {
    type: "json",
    field: "draft.input",
    help: "input of the work: JSON, @FILE, or - for standard input",
  },
  description: text("draft.description", "a text for people"),
  "external-id": text("draft.externalId", "the caller's own id of the task"),
  "correlation-id": text("draft.correlationId", "id that several tasks share"),
  contract: text("draft.contractId", "contract that the result must satisfy"),
  parent: text("draft.parentTaskId", "task that the new task belongs to"),
  "worker-token": { type: "file", help: "file with a token for the worker" },
  priority: { type: "int", field: "draft.priority", help: "0 to 9; higher comes first" },
  deadline: { type: "duration", field: "draft.limits.total", help: "time until the task expires" },
  "max-attempts": { type: "int", field: "draft.retry.maxAttempts", help: "most attempts" },
  "max-cost": { type: "int", field: "draft.spend.maxCostMicrocents", help: "most cost, in microcents" },
  "request-id": text("requestId", "id of this request: a repeated request creates no second task"),
};

export const TASKS: readonly Command[] = [
  {
    path: "delegate",
    group: "work",
    summary: "Creates a task, and waits for its result with --watch",
    details:
      "Without --watch it prints the new task. With --watch it shows progress on standard error, prints the output, and exits with 7 when the task ends without one. Ctrl-C leaves the task running.",
    flags: {
      ...DRAFT_FLAGS,
      watch: { type: "bool", short: "w", help: "wait for the result, with a progress bar" },
    },
    remote: true,
    example: `depute delegate --agent echo --input '{"text":"hello"}'`,
    program: "delegate",
  },
  {
    path: "tasks list",
    summary: "Lists tasks",
    remote: true,
    flags: {
      agent: text("agentId", "tasks of this agent"),
      status: {
        ...oneOf("statuses", "TASK_STATUS_", TASK_STATUSES, "tasks in this status; repeatable"),
        repeated: true,
      },
      "correlation-id": text("correlationId", "tasks with this id"),
      parent: text("parentTaskId", "child tasks of this task"),
      root: text("rootTaskId", "all tasks below this task"),
      capability: text("capabilityId", "tasks of this capability"),
      "created-from": { type: "time", field: "createdFrom", help: "created at this time or later" },
      "created-before": { type: "time", field: "createdBefore", help: "created before this time" },
    },
    example: "depute tasks list --status running --status pending -o wide",
    call: {
      service: "tasks",
      method: "listTasks",
      list: true,
      shown: { item: "tasks", columns: TASK_COLUMNS, wide: WIDE },
      stream: { method: "watchTasks", item: "tasks", isList: true },
    },
  },
  {
    path: "tasks describe",
    summary: "Shows a task with its input, output and limits",
    remote: true,
    args: [TASK],
    example: "depute tasks describe $TASK",
    call: { service: "tasks", method: "getTask", describe: true, shown: taskView },
  },
  {
    path: "tasks watch",
    summary: "Follows the events of a task to its end",
    remote: true,
    args: [TASK],
    flags: { after: { type: "int", field: "afterSequence", help: "start after the event of this number" } },
    example: "depute tasks watch $ENDED_TASK",
    call: {
      service: "tasks",
      method: "watchTask",
      shown: { item: "taskEvent", columns: EVENTS },
      stream: { method: "watchTask", item: "taskEvent" },
    },
  },
  {
    path: "tasks wait",
    summary: "Waits for the end of a task, and prints its output",
    details: "Exits with 7 when the task ends without a result.",
    remote: true,
    args: [TASK],
    example: "depute tasks wait $ENDED_TASK -o json",
    program: "wait",
  },
  {
    path: "tasks tree",
    summary: "Draws a task and all tasks below it",
    remote: true,
    args: [TASK],
    example: "depute tasks tree $TASK",
    program: "tree",
  },
  {
    path: "tasks cancel",
    summary: "Cancels a task",
    remote: true,
    args: [TASK],
    flags: {
      reason: text("reason", "why"),
      grace: { type: "duration", field: "grace", help: "time in which the worker may end in order" },
    },
    example: "depute tasks cancel $TASK --reason 'no longer needed'",
    call: { service: "tasks", method: "cancelTask", shown: taskView },
  },
  {
    path: "tasks suspend",
    summary: "Asks the worker to save its state and to interrupt the work",
    remote: true,
    args: [TASK],
    flags: { reason: text("reason", "why") },
    example: "depute tasks suspend $TASK",
    notRun: "needs running work",
    call: { service: "tasks", method: "suspendTask", shown: taskView },
  },
  {
    path: "tasks resume",
    summary: "Lets suspended work continue",
    remote: true,
    args: [TASK],
    example: "depute tasks resume $TASK",
    notRun: "needs suspended work",
    call: { service: "tasks", method: "resumeTask", shown: taskView },
  },
  {
    path: "tasks answer",
    summary: "Answers the question of a task's worker",
    remote: true,
    args: [TASK],
    flags: {
      input: {
        type: "json",
        field: "input",
        required: true,
        help: "the answer: JSON, @FILE, or - for standard input",
      },
    },
    example: `depute tasks answer $TASK --input '"yes"'`,
    notRun: "needs a question",
    call: { service: "tasks", method: "provideInput", shown: taskView },
  },
  {
    path: "tasks extend",
    summary: "Moves the deadline of a task",
    remote: true,
    args: [TASK],
    flags: {
      until: {
        type: "time",
        field: "expireTime",
        required: true,
        help: "the new deadline: a time of RFC 3339, or +DURATION from now",
      },
    },
    example: "depute tasks extend $OPEN_TASK --until +2h",
    call: { service: "tasks", method: "moveTaskDeadline", shown: taskView },
  },
  {
    path: "explain",
    group: "work",
    summary: "Explains who authorized a task, a purchase or a tool call, and shows its outcome",
    details:
      "Of a task it reads the task, the tasks above it, its authority and its contract, as far as the caller sees them. With --receipt or --call in place of TASK it shows the authority of a purchase or of a call through the MCP proxy. The bundle has the proofs of the authority; `depute verify-authority` checks it offline.",
    remote: true,
    args: [{ ...TASK, required: false }],
    flags: {
      receipt: { type: "string", help: "receipt_id of an execution, in place of TASK" },
      call: { type: "string", help: "request id of a tool call through the MCP proxy, in place of TASK" },
      sequence: {
        type: "int",
        default: "0",
        help: "audit record of the call, if several calls have the request id",
      },
      bundle: { type: "file", help: "file that receives the proofs of the authority" },
    },
    example: "depute explain $TASK",
    program: "explain",
  },
  {
    path: "worker",
    group: "work",
    summary: "Runs a program as the worker of an agent",
    details:
      "Each assignment starts the program: JSON input on standard input, JSON result on standard output, progress lines on file descriptor 3 as `DONE/TOTAL MESSAGE` or JSON with processed, total, message. Exit code 0 completes the task; 65 fails it for good; others fail the attempt. SIGTERM asks the program to stop, SIGKILL follows after the grace. The program sees DEPUTE_TASK_ID, DEPUTE_ATTEMPT and DEPUTE_WORKER_TOKEN.",
    remote: true,
    flags: {
      agent: { type: "string", required: true, help: "the agent whose assignments it takes" },
      capability: {
        type: "string",
        repeated: true,
        help: "register the agent with this capability first; repeatable",
      },
      capacity: { type: "int", default: "1", help: "most assignments at once; 1 to 100" },
      grace: { type: "duration", default: "10s", help: "time between SIGTERM and SIGKILL" },
    },
    rest: "COMMAND ARGUMENTS",
    example: "depute worker --agent echo --capability echo -- cat",
    notRun: "runs until it is stopped",
    program: "worker",
  },
];
