/** The topic that wakes the watchers of a task; the key is the task's id. */
export const TASK_TOPIC = "tasks";

/** The topic that wakes the workers of an agent; the key is the agent's id. */
export const ASSIGNMENT_TOPIC = "assignments";

/** The topic that wakes the dispatchers of the other replicas; the key is news in the form of {@link toNewsKey}. */
export const DISPATCH_TOPIC = "dispatch";

/** What has changed for an agent's dispatch: a task is pending, a worker has free capacity, or the limits changed. */
export type DispatchKind = "work" | "room" | "limits";

/** News for the dispatchers of other replicas. */
export interface DispatchNews {
  /** The id of the replica that has committed the change. */
  readonly replica: string;
  readonly kind: DispatchKind;
  readonly agentId: string;
}

export const toNewsKey = ({ replica, kind, agentId }: DispatchNews) => `${replica}/${kind}/${agentId}`;

/** Reads a key that {@link toNewsKey} made. */
export function readNewsKey(key: string): DispatchNews {
  const [replica = "", kind = ""] = key.split("/", 2);
  return { replica, kind: kind as DispatchKind, agentId: key.slice(replica.length + kind.length + 2) };
}
/** The topic that ends worker streams at the other replicas. The key is JSON: the agent's id and the stream's name. */
export const STREAM_END_TOPIC = "stream-ends";
/** The topic that wakes the watchers of a delegator's tasks; the key is the delegator's principal. */
export const DELEGATOR_TOPIC = "delegators";
