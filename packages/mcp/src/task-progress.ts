import { isObject, randomUuid } from "@depute/core";
import type { Progress } from "@modelcontextprotocol/client";

/** Maximum number of calls with a receiver. Beyond this number, the receiver of the oldest call is removed. */
const MAX_CALLS = 10_000;

/**
 * The functions that receive the progress of tasks. The SDK's client removes the function of a call when the call's
 * response arrives. But a task also reports progress after this response. (MCP 2025-11-25, Tasks)
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

  /** If a message of the server reports the progress of a task, calls the receiver of this task. */
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
