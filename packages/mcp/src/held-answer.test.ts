import { ManualClock } from "@depute/core";
import { expect, test } from "vitest";
import { HOLD_MS, held } from "./held-answer.ts";

/** Creates a response with a stream as body, to which the test writes. */
function streamed() {
  let controller: ReadableStreamDefaultController<Uint8Array> | undefined;
  let isCancelled = false;
  const body = new ReadableStream<Uint8Array>({
    start(started) {
      controller = started;
    },
    cancel() {
      isCancelled = true;
    },
  });
  return {
    answer: new Response(body, { status: 200, headers: { "content-type": "text/event-stream" } }),
    write: (text: string) => controller?.enqueue(new TextEncoder().encode(text)),
    end: () => controller?.close(),
    fail: () => controller?.error(new Error("broken")),
    isCancelled: () => isCancelled,
  };
}

test("an answer is forwarded completely, from its first bytes", async () => {
  const stream = streamed();
  const timers = new ManualClock();
  const holding = held(stream.answer, () => undefined, timers);
  stream.write("one ");
  const answer = await holding;
  expect([answer.status, answer.headers.get("content-type")]).toEqual([200, "text/event-stream"]);
  stream.write("two");
  stream.end();
  expect(await answer.text()).toBe("one two");
});

test("a refusal before the first bytes replaces the answer", async () => {
  const stream = streamed();
  let refusal: Response | undefined;
  const holding = held(stream.answer, () => refusal, new ManualClock());
  refusal = new Response(null, { status: 401 });
  stream.write("refused");
  expect((await holding).status).toBe(401);
  expect(stream.isCancelled()).toBe(true);
});

test("the headers of a slow answer are sent after the bound, and its bytes as they arrive", async () => {
  const stream = streamed();
  const timers = new ManualClock();
  let answer: Response | undefined;
  const holding = held(stream.answer, () => undefined, timers).then((response) => {
    answer = response;
  });
  timers.advance(HOLD_MS - 1);
  await new Promise((resolve) => setImmediate(resolve));
  expect(answer).toBeUndefined();
  timers.advance(1);
  await holding;
  expect(answer?.status).toBe(200);
  stream.write("late");
  stream.end();
  expect(await answer?.text()).toBe("late");
});

test("the reader of a broken stream gets the error", async () => {
  const stream = streamed();
  const holding = held(stream.answer, () => undefined, new ManualClock());
  stream.fail();
  await expect((await holding).text()).rejects.toThrow("broken");
});

test("an answer without a body is forwarded unchanged", async () => {
  const answer = new Response(null, { status: 202 });
  expect(await held(answer, () => undefined, new ManualClock())).toBe(answer);
});
