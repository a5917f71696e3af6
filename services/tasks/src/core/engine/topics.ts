/** Wakes the watchers of a task; the key is its id. */
export const TASK_TOPIC = "tasks";

/** Wakes the workers of an agent; the key is the agent's id. */
export const ASSIGNMENT_TOPIC = "assignments";

/**
 * Wakes the dispatchers of the other replicas. The key is the id of the replica that changed the tasks, a slash, and the
 * agent's id.
 */
export const DISPATCH_TOPIC = "dispatch";
/** Ends worker streams at the other replicas; the key is in JSON: the agent's id and the stream's name. */
export const STREAM_END_TOPIC = "stream-ends";
/** Wakes the watchers of a delegator's tasks; the key is the delegator's principal. */
export const DELEGATOR_TOPIC = "delegators";
