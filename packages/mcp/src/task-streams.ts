import type { Timers } from "@depute/core";
import { acknowledged, endOfListen, taskNotification } from "./rules/listen-messages.ts";
import { LIMIT_REACHED, Refusal } from "./rules/refusal.ts";

/** Maximum number of open streams that show tasks. */
const MAX_STREAMS = 1024;
/** Milliseconds between two SSE comments on a silent stream, so that no intermediary closes the stream. */
const KEEP_ALIVE_MS = 15_000;

type Json = Record<string, unknown>;

/** The tasks that one stream shows. */
export interface FollowedTasks<Task> {
  /**
   * The ids of the tasks that the stream shows. All other ids of the request are unknown, or name tasks of other
   * callers.
   */
  readonly taskIds: readonly string[];
  /**
   * Calls `onTask` with the current state of each task, and then with each new state. Resolves when no further state
   * can come. Rejects if the tasks can no longer be read.
   */
  follow(onTask: (taskId: string, task: Task) => void, signal: AbortSignal): Promise<void>;
}

/**
 * Adds the states of tasks to streams of `subscriptions/listen`, because the SDK's streams have none. (MCP 2026-07-28,
 * extension io.modelcontextprotocol/tasks)
 */
export class TaskStreams {
  readonly #timers: Timers;
  readonly #onError: (error: Error) => void;
  /**
   * The functions that end the streams that show only tasks, one function for each stream. The SDK has already ended
   * its part of such a stream.
   */
  readonly #ends = new Set<() => void>();
  #open = 0;

  constructor(timers: Timers, onError: (error: Error) => void) {
    this.#timers = timers;
    this.#onError = onError;
  }

  /** Throws Refusal if the maximum number of streams is open. */
  assertRoom(): void {
    if (this.#open < MAX_STREAMS) return;
    throw new Refusal(LIMIT_REACHED, "Limit exceeded", {
      reason: "LIMIT_EXCEEDED",
      detail: "too many streams show tasks; read tasks with tasks/get, or try again later",
      metadata: { limit: "mcp_task_streams", max: String(MAX_STREAMS) },
    });
  }

  /**
   * Returns the SDK's stream with the states of tasks.
   *
   * @param answer the SDK's answer to the request. If it is not a stream, or if there are no tasks, it is returned
   * unchanged
   * @param id the id of the request, which every message of the stream repeats
   */
  show(answer: Response, id: unknown, tasks: FollowedTasks<Json>): Response {
    const { body, headers, status } = answer;
    if (body === null || !isEventStream(answer) || tasks.taskIds.length === 0) {
      abandon(tasks);
      return answer;
    }
    const leaving = new AbortController();
    const frames = this.#frames(body, id, tasks, leaving.signal);
    const encoder = new TextEncoder();
    const shown = new ReadableStream<Uint8Array>({
      async pull(out) {
        const { done, value } = await frames.next();
        if (done) out.close();
        else out.enqueue(encoder.encode(value));
      },
      cancel() {
        leaving.abort();
        return frames.return(undefined).then(() => {});
      },
    });
    return new Response(shown, { status, headers });
  }

  /** Ends the streams that show only tasks. The SDK ends all other streams. */
  close(): void {
    for (const end of this.#ends) end();
  }

  async *#frames(
    body: ReadableStream<Uint8Array>,
    id: unknown,
    tasks: FollowedTasks<Json>,
    leaving: AbortSignal,
  ): AsyncGenerator<string, undefined> {
    const sdk = new EventFrames(body);
    const followed = new Followed(tasks);
    const end = () => followed.end();
    leaving.addEventListener("abort", end);
    this.#open++;
    try {
      const { message, isOnly } = acknowledged(messageOf((await sdk.next()) ?? ""), {
        taskIds: [...tasks.taskIds],
      });
      yield frameOf(message);
      followed.begin(this.#onError);
      if (isOnly) {
        this.#ends.add(end);
        // If a stream listens only to tasks, the SDK ends the stream at once, because the SDK does not support tasks.
        const lastFrame = await sdk.next();
        yield* this.#alone(followed, id);
        if (!leaving.aborted) yield lastFrame ?? frameOf(endOfListen(id));
      } else {
        yield* beside(sdk, followed, id);
      }
    } finally {
      this.#open--;
      this.#ends.delete(end);
      followed.end();
      // Ends the subscriptions that the SDK began for this stream.
      await sdk.cancel();
    }
  }

  /** Sends the states of tasks on a stream that has no events of the SDK. */
  async *#alone(followed: Followed, id: unknown): AsyncGenerator<string, undefined> {
    while (!followed.hasEnded) {
      const { promise: silence, resolve } = Promise.withResolvers<"silence">();
      const cancel = this.#timers.after(KEEP_ALIVE_MS, () => resolve("silence"));
      const event = await Promise.race([followed.changed(), silence]);
      cancel();
      if (event === "silence") yield ": keepalive\n\n";
      else yield* followed.take().map((task) => frameOf(taskNotification(id, task)));
    }
  }
}

/** Sends the states of tasks between the events of the SDK's stream. The SDK itself sends the keep-alive comments. */
async function* beside(sdk: EventFrames, followed: Followed, id: unknown): AsyncGenerator<string, undefined> {
  let next = sdk.next();
  while (!followed.hasEnded) {
    const frame = await Promise.race([followed.changed(), next.then((text) => ({ text }))]);
    if (frame === undefined) {
      yield* followed.take().map((task) => frameOf(taskNotification(id, task)));
      continue;
    }
    if (frame.text === undefined) return;
    yield frame.text;
    next = sdk.next();
  }
  yield frameOf(endOfListen(id));
}

/** The states of tasks that have not yet been sent on a stream. Only the newest state of each task is kept. */
class Followed {
  readonly #tasks: FollowedTasks<Json>;
  readonly #unsent = new Map<string, Json>();
  readonly #stop = new AbortController();
  #wake = Promise.withResolvers<undefined>();

  constructor(tasks: FollowedTasks<Json>) {
    this.#tasks = tasks;
  }

  get hasEnded(): boolean {
    return this.#stop.signal.aborted && this.#unsent.size === 0;
  }

  begin(onError: (error: Error) => void): void {
    const onTask = (taskId: string, task: Json) => {
      this.#unsent.set(taskId, task);
      this.#wake.resolve(undefined);
    };
    this.#tasks
      .follow(onTask, this.#stop.signal)
      .catch((thrown: Error) => onError(thrown))
      .finally(() => this.end());
  }

  /** Resolves when there is a state to send, or when no further state can come. */
  changed(): Promise<undefined> {
    return this.#wake.promise;
  }

  /** Removes and returns the states that have not yet been sent. */
  take(): Json[] {
    const states = [...this.#unsent.values()];
    this.#unsent.clear();
    if (!this.#stop.signal.aborted) this.#wake = Promise.withResolvers();
    return states;
  }

  end(): void {
    this.#stop.abort();
    this.#wake.resolve(undefined);
  }
}

/** Stops the following of tasks that no stream will show. */
export function abandon(tasks: FollowedTasks<Json>): void {
  tasks.follow(() => {}, AbortSignal.abort()).catch(() => {});
}

export function isEventStream({ headers }: Response): boolean {
  return headers.get("content-type")?.startsWith("text/event-stream") === true;
}

/** Returns the message of one event. */
function messageOf(frame: string): Json {
  return JSON.parse(frame.slice(frame.indexOf("data:") + 5)) as Json;
}

function frameOf(message: object): string {
  return `event: message\ndata: ${JSON.stringify(message)}\n\n`;
}

/** Splits a stream of server-sent events into its events. */
class EventFrames {
  readonly #reader: ReadableStreamDefaultReader<Uint8Array>;
  readonly #decoder = new TextDecoder();
  #text = "";

  constructor(body: ReadableStream<Uint8Array>) {
    this.#reader = body.getReader();
  }

  /** Returns the next event; undefined at the end of the stream. */
  async next(): Promise<string | undefined> {
    let end = this.#text.indexOf("\n\n");
    while (end < 0) {
      const { done, value } = await this.#reader.read();
      if (done) return undefined;
      this.#text += this.#decoder.decode(value, { stream: true });
      end = this.#text.indexOf("\n\n");
    }
    const frame = this.#text.slice(0, end + 2);
    this.#text = this.#text.slice(end + 2);
    return frame;
  }

  /** Cancels the stream, even while `next` is waiting for an event. */
  cancel(): Promise<void> {
    return this.#reader.cancel();
  }
}
