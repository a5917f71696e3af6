import type { SendMessageRequest, StreamResponse, Task } from "@depute/contracts/lf/a2a/v1/a2a_pb";

/** An A2A agent on another server, over any binding. A failed call throws PeerFault. */
export interface A2aPeer {
  /**
   * Sends a message. An agent with streams yields the task and its changes; any other agent yields one response. (A2A
   * 3.1.1, 3.1.2)
   */
  send(request: SendMessageRequest, signal: AbortSignal): AsyncIterable<StreamResponse>;
  /** Yields the task's state, then its changes. (A2A 3.1.6) */
  subscribe(taskId: string, signal: AbortSignal): AsyncIterable<StreamResponse>;
  /** Returns the task's state. (A2A 3.1.3) */
  get(taskId: string, signal: AbortSignal): Promise<Task>;
  cancel(taskId: string, signal: AbortSignal): Promise<void>;
  close(): void;
}
