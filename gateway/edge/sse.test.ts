import { once } from "node:events";
import { createServer, type IncomingMessage, request, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { ManualClock } from "@depute/core";
import { afterEach, describe, expect, test } from "vitest";
import { frame, HEARTBEAT_MS, type SseEvent, STALLED_MS, sendEvents } from "./sse.ts";

let server: Server | undefined;
afterEach(async () => {
  server?.closeAllConnections();
  server?.close();
  server = undefined;
});

/** Serves a stream. Returns the address, and the means to control and observe the stream. */
async function serve(events: AsyncGenerator<SseEvent, void, undefined>) {
  const clock = new ManualClock();
  const stopping = new AbortController();
  let done: () => void = () => {};
  const over = new Promise<void>((resolve) => {
    done = resolve;
  });
  server = createServer((_, response) => {
    void sendEvents(response, events, { timers: clock, stopping: stopping.signal }).then(done);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const get = request({ port, host: "127.0.0.1" });
  get.on("error", () => {});
  get.end();
  const [response] = (await once(get, "response")) as [IncomingMessage];
  return { clock, stopping, over, get, response };
}

type Served = Awaited<ReturnType<typeof serve>>;

async function* eventsOf(...events: SseEvent[]) {
  yield* events;
}

async function textOf(response: AsyncIterable<Buffer>): Promise<string> {
  let text = "";
  for await (const chunk of response) text += chunk.toString();
  return text;
}

describe("frame", () => {
  test.each([
    [{ event: "progress", data: { processed: 50 } }, 'event: progress\ndata: {"processed":50}\n\n'],
    [{ event: "e", data: null, id: "7" }, "id: 7\nevent: e\ndata: null\n\n"],
    [{ event: "e", data: "a\nb\r\u2028" }, 'event: e\ndata: "a\\nb\\r\u2028"\n\n'],
  ] as const)("%j", (event, text) => {
    expect(frame(event)).toBe(text);
  });
});

describe("a stream of events", () => {
  test("contains its headers, every frame, and an end", async () => {
    const { response, clock, over } = await serve(
      eventsOf({ event: "a", data: 1, id: "1" }, { event: "b", data: 2 }),
    );
    expect(response.statusCode).toBe(200);
    expect(response.headers).toMatchObject({
      "content-type": "text/event-stream",
      "cache-control": "no-cache",
      "x-accel-buffering": "no",
    });
    expect(await textOf(response)).toBe("id: 1\nevent: a\ndata: 1\n\nevent: b\ndata: 2\n\n");
    await over;
    expect(clock.pending).toBe(0);
  });

  test("is kept open by comments during silence", async () => {
    const pause = gate();
    const events = (async function* (): AsyncGenerator<SseEvent, void, undefined> {
      yield { event: "a", data: 1 };
      await pause.opened;
      yield { event: "b", data: 2 };
    })();
    const { response, clock } = await serve(events);
    const read = reader(response);
    await until(() => read.text() !== "");
    clock.advance(HEARTBEAT_MS - 1);
    expect(read.text()).toBe("event: a\ndata: 1\n\n");
    clock.advance(1);
    clock.advance(HEARTBEAT_MS);
    pause.open();
    expect(await read.end).toBe("event: a\ndata: 1\n\n: still here\n\n: still here\n\nevent: b\ndata: 2\n\n");
  });

  test.each([
    ["the client leaves", ({ get }: Served) => get.destroy()],
    ["the process drains", ({ stopping }: Served) => stopping.abort()],
  ])("ends when %s, also while its source waits", async (_, end) => {
    const waits = gate();
    let isClosed = false;
    const events = (async function* (): AsyncGenerator<SseEvent, void, undefined> {
      try {
        yield { event: "a", data: 1 };
        await waits.opened;
      } finally {
        isClosed = true;
      }
    })();
    const served = await serve(events);
    const read = reader(served.response);
    await until(() => read.text() !== "");
    end(served);
    await served.over;
    expect(served.clock.pending).toBe(0);
    waits.open();
    await until(() => isClosed);
    expect(await read.end).toBe("event: a\ndata: 1\n\n");
  });

  test("is read no faster than the client reads, and ends for a client that never reads", async () => {
    let sentCount = 0;
    const events = (async function* (): AsyncGenerator<SseEvent, void, undefined> {
      for (;;) {
        sentCount++;
        yield { event: "big", data: "x".repeat(1_000_000) };
      }
    })();
    const { response, clock, over } = await serve(events);
    response.pause();
    // Waits until only the timer for a stalled client is pending: then the writer waits for the client to read.
    await until(() => clock.pending === 1 && sentCount > 0);
    await settled(() => sentCount);
    const before = sentCount;
    expect(before).toBeLessThan(50);
    clock.advance(STALLED_MS);
    await over;
    expect(sentCount).toBeLessThanOrEqual(before + 1);
  });

  test("ends when its source fails", async () => {
    const events = (async function* (): AsyncGenerator<SseEvent, void, undefined> {
      yield { event: "a", data: 1 };
      throw new Error("broken");
    })();
    const { response } = await serve(events);
    expect(await textOf(response)).toBe("event: a\ndata: 1\n\n");
  });
});

/**
 * Collects the text that a client has read. `end` is a promise of the whole text; it resolves when the connection
 * closes.
 */
function reader(response: IncomingMessage) {
  let text = "";
  response.on("data", (chunk: Buffer) => {
    text += chunk.toString();
  });
  response.on("error", () => {});
  const end = new Promise<string>((resolve) => response.once("close", () => resolve(text)));
  return { text: () => text, end };
}

function gate() {
  let open: () => void = () => {};
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { open, opened };
}

async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise((resolve) => setImmediate(resolve));
}

/** Waits until a number has not changed for many iterations of the event loop. */
async function settled(read: () => number): Promise<void> {
  for (let same = 0, last = read(); same < 200; ) {
    await new Promise((resolve) => setImmediate(resolve));
    same = read() === last ? same + 1 : 0;
    last = read();
  }
}
