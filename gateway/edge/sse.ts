import type { ServerResponse } from "node:http";
import type { JsonValue } from "@bufbuild/protobuf";
import type { Timers } from "@depute/core";
import { type HttpResponse, iterateUntilAborted } from "@depute/service";

/** One server-sent event. */
export interface SseEvent {
  /** The name of the event; absent for an event that clients treat as `message`, the default of SSE. */
  readonly event?: string;
  readonly data: JsonValue;
  /** The id of the event. A client sends it as `Last-Event-ID` to resume the stream after this event. */
  readonly id?: string;
}

export interface SseOptions {
  readonly timers: Timers;
  /** Aborts when the process drains. The stream then ends, and the client can resume it at another process. */
  readonly stopping: AbortSignal;
}

/** Milliseconds of silence after which the gateway sends a comment, so that HTTP proxies keep the connection open. */
export const HEARTBEAT_MS = 15_000;
/**
 * Maximum time in milliseconds for which a client may leave sent data unread. The gateway then closes the connection.
 */
export const STALLED_MS = 60_000;

const HEADERS = {
  "content-type": "text/event-stream",
  "cache-control": "no-cache",
  // This header stops HTTP proxies from buffering events.
  "x-accel-buffering": "no",
};

/**
 * Sends a stream of events until the stream ends or the client disconnects. A HEAD request gets only the headers. The
 * gateway reads the stream no faster than the client reads the answer. Never throws: if the stream fails, the answer
 * ends. The client learns of a fault only if the stream yields the fault as an event.
 */
export async function sendEvents(
  response: HttpResponse,
  events: AsyncGenerator<SseEvent, void, undefined>,
  { timers, stopping }: SseOptions,
): Promise<void> {
  (response as ServerResponse).writeHead(200, HEADERS);
  if (response.req.method === "HEAD") {
    response.end();
    await events.return();
    return;
  }
  (response as ServerResponse).flushHeaders();
  const writer = new Writer(response as ServerResponse, timers);
  const closed = new AbortController();
  response.once("close", () => closed.abort());
  try {
    const signal = AbortSignal.any([closed.signal, stopping]);
    for await (const event of iterateUntilAborted(signal, events)) await writer.send(frame(event));
  } catch {
    // Reached when the client has disconnected, the process drains or the stream fails. The code below closes the
    // stream.
  } finally {
    writer.end();
    // Not awaited: a generator that waits for its next event finishes `return` only after that event, or when the
    // call's signal aborts.
    events.return().catch(() => {});
  }
}

/**
 * Writes an event in the format of server-sent events. Each member takes one line, because the JSON text contains no
 * line break.
 */
export function frame({ event, data, id }: SseEvent): string {
  const head = `${id === undefined ? "" : `id: ${id}\n`}${event === undefined ? "" : `event: ${event}\n`}`;
  return `${head}data: ${JSON.stringify(data)}\n\n`;
}

class Writer {
  readonly #response: ServerResponse;
  readonly #timers: Timers;
  #cancelBeat: () => void = () => {};
  #isBlocked = false;

  constructor(response: ServerResponse, timers: Timers) {
    this.#response = response;
    this.#timers = timers;
    this.#beatLater();
  }

  /** Writes a text, and waits until the connection accepts more. */
  async send(text: string): Promise<void> {
    this.#cancelBeat();
    if (!this.#response.write(text)) await this.#room();
    this.#beatLater();
  }

  end(): void {
    this.#cancelBeat();
    this.#response.end();
  }

  #room(): Promise<void> {
    const response = this.#response;
    this.#isBlocked = true;
    return new Promise((resolve) => {
      const cancel = this.#timers.after(STALLED_MS, () => response.destroy());
      const done = () => {
        cancel();
        response.off("drain", done);
        response.off("close", done);
        this.#isBlocked = false;
        resolve();
      };
      response.once("drain", done);
      response.once("close", done);
    });
  }

  #beatLater(): void {
    this.#cancelBeat();
    this.#cancelBeat = this.#timers.after(HEARTBEAT_MS, () => {
      if (this.#response.destroyed || this.#response.writableEnded) return;
      if (!this.#isBlocked) this.#response.write(": still here\n\n");
      this.#beatLater();
    });
  }
}
