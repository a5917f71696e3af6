/** Wakes the watchers of a task; the key is its id. */
export const TASK_TOPIC = "tasks";

/** Wakes the workers of an agent; the key is the agent's id. */
export const ASSIGNMENT_TOPIC = "assignments";

/** Wakes the watchers of a delegator's tasks; the key is the delegator's principal. */
export const DELEGATOR_TOPIC = "delegators";
