import { expect, test } from "vitest";
import { limitedAnswer } from "./limited-answer.ts";

/** Creates a response whose body arrives in pieces. */
const answer = (type: string, pieces: readonly string[]) =>
  new Response(
    new ReadableStream({
      start(controller) {
        for (const piece of pieces) controller.enqueue(new TextEncoder().encode(piece));
        controller.close();
      },
    }),
    { headers: { "content-type": type } },
  );
const event = (text: string) => `event: message\ndata: ${text}\n\n`;
const TOO_LARGE = {
  jsonrpc: "2.0",
  id: 7,
  error: { code: -32603, message: "the message has more than 64 bytes" },
};

test("keeps an answer within the limit unchanged", async () => {
  const limited = await limitedAnswer(answer("application/json", ['{"id"', ":7}"]), 64, 7);
  expect(await limited.json()).toEqual({ id: 7 });
});

test("a larger answer is replaced by an error for its request", async () => {
  const limited = await limitedAnswer(answer("application/json", ["x".repeat(60), "x".repeat(60)]), 64, 7);
  expect(await limited.json()).toMatchObject(TOO_LARGE);
});

test.each([1, 5, 1000])("any number of events within the limit passes: chunks of %i", async (size) => {
  const all = Array.from({ length: 20 }, (_, i) => event(`{"n":${i}}`)).join("");
  const pieces = all.match(new RegExp(`[^]{1,${size}}`, "g")) ?? [];
  const limited = await limitedAnswer(answer("text/event-stream", pieces), 64, 7);
  expect(await limited.text()).toBe(all);
});

test.each([1, 5, 1000])(
  "a stream ends with an error in place of a larger event: chunks of %i",
  async (size) => {
    const all = event("{}") + event("x".repeat(200)) + event("{}");
    const pieces = all.match(new RegExp(`[^]{1,${size}}`, "g")) ?? [];
    const text = await (await limitedAnswer(answer("text/event-stream", pieces), 64, 7)).text();
    const [first, second = "", ...others] = text.split("\n\n");
    expect([first, others]).toEqual(["event: message\ndata: {}", [""]]);
    expect(JSON.parse(second.slice("data: ".length))).toMatchObject(TOO_LARGE);
  },
);

test("a stream without a request ends without an error message", async () => {
  const limited = await limitedAnswer(answer("text/event-stream", [event("x".repeat(200))]), 64, undefined);
  expect(await limited.text()).toBe("");
});
