import type { ServerResponse } from "node:http";
import type { JsonValue } from "@bufbuild/protobuf";
import type { Timers } from "@depute/core";
import { type HttpResponse, iterateUntilAborted } from "@depute/service";

/** One server-sent event. */
export interface SseEvent {
  readonly event: string;
  readonly data: JsonValue;
  /** What a client sends as `Last-Event-ID` to take the stream up after this event. */
  readonly id?: string;
}

export interface SseOptions {
  readonly timers: Timers;
  /** Ends the stream, when the process drains; the client takes it up again elsewhere. */
  readonly stopping: AbortSignal;
}

/** Milliseconds of silence after which a comment keeps the connection open. */
export const HEARTBEAT_MS = 15_000;
/** Milliseconds that a client may leave what was sent unread before it is cut off. */
export const STALLED_MS = 60_000;

const HEADERS = {
  "content-type": "text/event-stream",
  "cache-control": "no-cache",
  // Proxies that would gather the events are told not to.
  "x-accel-buffering": "no",
};

/**
 * Answers with a stream of events, until it ends or the client leaves; HEAD with its headers alone. It is read no faster than the client reads.
 *
 * Throws nothing: a stream that breaks ends the answer. Whoever makes events tells of faults by one of them.
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
    // The client has left, or the process drains.
  } finally {
    writer.end();
    // Not waited for: a source that waits itself hears of it when it goes on, or by the call's signal.
    events.return().catch(() => {});
  }
}

/** An event as it stands on the wire: one line each, since JSON text holds no line break. */
export function frame({ event, data, id }: SseEvent): string {
  return `${id === undefined ? "" : `id: ${id}\n`}event: ${event}\ndata: ${JSON.stringify(data)}\n\n`;
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

  /** Writes, and waits until there is room for more. */
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
