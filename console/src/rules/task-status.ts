import { TaskStatus } from "@depute/contracts/depute/tasks/v1/task_pb";

/** The meaning of a color. The page also states each meaning in words, because not all people see colors. */
export type Tone = "neutral" | "active" | "waiting" | "good" | "bad";

interface StatusFacts {
  readonly label: string;
  readonly tone: Tone;
  readonly isOpen: boolean;
}

const FACTS: Readonly<Record<TaskStatus, StatusFacts>> = {
  [TaskStatus.UNSPECIFIED]: { label: "Unknown", tone: "neutral", isOpen: false },
  [TaskStatus.PENDING]: { label: "Pending", tone: "neutral", isOpen: true },
  [TaskStatus.ACCEPTED]: { label: "Accepted", tone: "active", isOpen: true },
  [TaskStatus.RUNNING]: { label: "Running", tone: "active", isOpen: true },
  [TaskStatus.SUSPENDED]: { label: "Suspended", tone: "waiting", isOpen: true },
  [TaskStatus.INPUT_REQUIRED]: { label: "Input required", tone: "waiting", isOpen: true },
  [TaskStatus.IN_REVIEW]: { label: "In review", tone: "waiting", isOpen: true },
  [TaskStatus.COMPLETED]: { label: "Completed", tone: "good", isOpen: false },
  [TaskStatus.REJECTED]: { label: "Rejected", tone: "bad", isOpen: false },
  [TaskStatus.FAILED]: { label: "Failed", tone: "bad", isOpen: false },
  [TaskStatus.CANCELLED]: { label: "Cancelled", tone: "neutral", isOpen: false },
  [TaskStatus.EXPIRED]: { label: "Expired", tone: "bad", isOpen: false },
  [TaskStatus.REVOKED]: { label: "Revoked", tone: "bad", isOpen: false },
};

/**
 * Returns the facts about a status. For a status that this version does not know, returns the facts of `UNSPECIFIED`.
 */
export function statusFacts(status: TaskStatus): StatusFacts {
  return FACTS[status] ?? FACTS[TaskStatus.UNSPECIFIED];
}

/** All statuses that a task can have, in the order of their numbers in the contract. */
export const STATUSES: readonly TaskStatus[] = Object.keys(FACTS)
  .map(Number)
  .filter((status) => status !== TaskStatus.UNSPECIFIED) as TaskStatus[];

/** The statuses of tasks that have not ended. */
export const OPEN_STATUSES: readonly TaskStatus[] = STATUSES.filter((status) => statusFacts(status).isOpen);

/** The actions that a delegator may take on a task in a status. The platform may still refuse an action. */
export interface TaskActions {
  readonly cancel: boolean;
  readonly suspend: boolean;
  readonly resume: boolean;
  readonly answer: boolean;
}

/** Returns the actions that a delegator may take on a task in a status. */
export function actionsOf(status: TaskStatus): TaskActions {
  return {
    cancel: statusFacts(status).isOpen,
    suspend: status === TaskStatus.ACCEPTED || status === TaskStatus.RUNNING,
    resume: status === TaskStatus.SUSPENDED,
    answer: status === TaskStatus.INPUT_REQUIRED,
  };
}
