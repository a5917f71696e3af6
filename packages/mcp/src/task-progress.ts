import { isObject, randomUuid } from "@depute/core";
import type { Progress } from "@modelcontextprotocol/client";

/** Maximum number of calls. The oldest is forgotten first. */
const MAX_CALLS = 10_000;

/**
 * The receivers of tasks' progress. The SDK's client removes the receiver of a call when the response arrives. A task
 * also reports progress after that response. (MCP 2025-11-25, Tasks)
 */
export class TaskProgress {
  readonly #receivers = new Map<unknown, (progress: Progress) => void>();

  /** Returns the progress token of a call that begins a task. */
  begin(onProgress: (progress: Progress) => void): string {
    const token = randomUuid();
    this.#receivers.set(token, onProgress);
    const [oldest] = this.#receivers.keys();
    if (this.#receivers.size > MAX_CALLS) this.#receivers.delete(oldest);
    return token;
  }

  /** Passes on a message of the server if it is the progress of a task. */
  receive(message: unknown): void {
    if (!isObject(message) || message.method !== "notifications/progress" || !isObject(message.params))
      return;
    const { progressToken, ...progress } = message.params;
    if (typeof progress.progress === "number")
      this.#receivers.get(progressToken)?.(progress as unknown as Progress);
  }

  /** Removes all receivers, because the server no longer has any task. */
  clear(): void {
    this.#receivers.clear();
  }
}
