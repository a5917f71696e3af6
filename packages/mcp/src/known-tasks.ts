import type { Presentation } from "./presentation.ts";
import type { Right } from "./rules/visible.ts";

/** Maximum number of stored tasks. At the maximum, a new task replaces the oldest task. */
const MAX_TASKS = 10_000;

/** A task of a server, as this process has recorded it. */
export interface KnownTask {
  /** The id under which the client knows the task. */
  readonly id: string;
  /**
   * Identifies the caller in whose list the task appears: by the token's holder and the login or, without both, by
   * the MCP session.
   */
  readonly owner: string;
  readonly rights: readonly Right[];
  readonly presentation: Presentation | undefined;
  /** Sends the state of the task to the client's MCP session; absent if the client has no session. */
  readonly notify?: (task: Record<string, unknown>) => void;
}

/**
 * The tasks that clients began through this process. A restart loses this list, but the ids of the tasks stay valid.
 */
export class KnownTasks {
  readonly #tasks = new Map<string, KnownTask>();

  /** @param connection the connection on which the task began; two connections may use the same task id */
  add(connection: string, taskId: string, task: KnownTask): void {
    const key = keyOf(connection, taskId);
    this.#tasks.delete(key);
    this.#tasks.set(key, task);
    const [oldest] = this.#tasks.keys();
    if (this.#tasks.size > MAX_TASKS && oldest !== undefined) this.#tasks.delete(oldest);
  }

  get(connection: string, taskId: unknown): KnownTask | undefined {
    return typeof taskId === "string" ? this.#tasks.get(keyOf(connection, taskId)) : undefined;
  }
}

function keyOf(connection: string, taskId: string): string {
  return JSON.stringify([connection, taskId]);
}
