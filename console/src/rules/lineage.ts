import type { Task } from "@depute/contracts/depute/tasks/v1/task_pb";

/** The objects of other protocols that may have caused a task. An empty id means that there is no such object. */
export interface Causes {
  /** The id (`request_id`) of the Agenta execution whose work the task does; empty for none. */
  readonly executionRequestId: string;
  /**
   * The id of the ASP session that may have delegated the task. Only the platform knows whether a session with this id
   * exists.
   */
  readonly sessionId: string;
  /** The id that CAP messages about the task would have. Only the platform knows whether there are such messages. */
  readonly capTaskId: string;
  /** Whether an A2A message began the task. */
  readonly isConversation: boolean;
}

const SESSION_ID = /^[0-9A-Za-z]{8}(-[0-9A-Za-z]{4}){3}-[0-9A-Za-z]{12}$/;
const CAP_TASK_ID = /^[A-Za-z0-9_-]+([.][A-Za-z0-9_-]+)*$/;

/** Returns the objects of other protocols that a task's fields and ids name. */
export function causesOf(task: Task): Causes {
  const { id, correlationId, externalId, executionRequestId, isConversation } = task;
  const isForeign = correlationId !== id && !isConversation && executionRequestId === "";
  return {
    executionRequestId,
    sessionId: isForeign && SESSION_ID.test(correlationId) ? correlationId : "",
    capTaskId: externalId.length <= 256 && CAP_TASK_ID.test(externalId) ? externalId : "",
    isConversation,
  };
}
