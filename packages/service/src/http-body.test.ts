import { PassThrough } from "node:stream";
import { Code } from "@connectrpc/connect";
import { ErrorReason, ManualClock } from "@depute/core";
import { expect, test } from "vitest";
import { assertMediaType, bodyStatusOf, mediaTypeOf, readBody, wrongMediaType } from "./http-body.ts";
import { refusal } from "./testing/refusal.ts";

function body(...chunks: readonly (string | Uint8Array)[]) {
  const source = new PassThrough();
  for (const chunk of chunks) source.write(chunk);
  return source;
}

const limits = (clock: ManualClock) => ({ maxBytes: 10, timeoutMs: 1000, timers: clock });

/** Whether nothing reads the body, as after its refusal. */
const isLeft = (source: PassThrough) => source.isPaused() && source.listenerCount("data") === 0;

test("a body is read completely, including bytes that were read before", async () => {
  const source = body("cd", "e");
  source.end();
  const clock = new ManualClock();
  expect((await readBody(source, limits(clock), [Buffer.from("ab")])).toString()).toBe("abcde");
});

test.each([
  ["by its own word", { "content-length": "11" }, []],
  ["by what has come", {}, ["0123456789", "x"]],
  ["by what was read before", {}, []],
])("too long %s is refused, and left unread", async (name, headers, chunks) => {
  const source = Object.assign(body(...chunks), { headers });
  const receivedChunks = name.endsWith("before") ? [Buffer.alloc(11)] : [];
  const { reason, metadata } = await refusal(readBody(source, limits(new ManualClock()), receivedChunks));
  expect([reason, metadata]).toEqual(["LIMIT_EXCEEDED", { limit: "body_bytes", max: "10" }]);
  expect(source.listenerCount("data")).toBe(0);
});

test("an envelope is refused by its stated length", async () => {
  const claim = (bytes: number) => Uint8Array.of(0, 0, 0, 0, bytes);
  const envelope = { ...limits(new ManualClock()), isEnveloped: true };
  expect((await refusal(readBody(body(claim(11)), envelope))).metadata.limit).toBe("body_bytes");
  const split = body(claim(11).subarray(0, 2), claim(11).subarray(2));
  expect((await refusal(readBody(split, envelope))).metadata.max).toBe("10");
  const completeBody = body(claim(10), new Uint8Array(10));
  completeBody.end();
  expect(await readBody(completeBody, envelope)).toHaveLength(15);
});

test("a body that takes too long is refused, however often a byte arrives", async () => {
  const clock = new ManualClock();
  const source = body("a");
  const read = refusal(readBody(source, limits(clock)));
  clock.advance(600);
  source.write("b");
  clock.advance(400);
  const { reason, metadata } = await read;
  expect([reason, metadata]).toEqual(["DEADLINE_EXCEEDED", { limit: "body_ms", max: "1000" }]);
  expect(isLeft(source)).toBe(true);
});

test("a client that disconnects ends the wait", async () => {
  const source = body("a");
  const read = readBody(source, limits(new ManualClock()));
  source.destroy(new Error("gone"));
  await expect(read).rejects.toMatchObject({ code: Code.Canceled });
  await expect(readBody(source, limits(new ManualClock()))).rejects.toMatchObject({ code: Code.Canceled });
});

test.each([
  ["application/json", true],
  ["Application/JSON ; charset=utf-8", true],
  ["application/jsonp", false],
  ["text/plain", false],
  [undefined, false],
])("the content type %s", (type, isTaken) => {
  const headers = type === undefined ? {} : { "content-type": type };
  const check = () => assertMediaType(headers, ["application/json"]);
  if (isTaken) expect(check).not.toThrow();
  else expect(check).toThrow("the content type must be application/json");
});

test("a compressed body is refused, whatever its content", () => {
  const headers = { "content-type": "application/json", "content-encoding": "gzip" };
  expect(() => assertMediaType(headers, ["application/json"])).toThrow("send the body uncompressed");
});

test("a media type has no parameters", () => {
  expect([mediaTypeOf(" Text/Plain;a=b"), mediaTypeOf(undefined)]).toEqual(["text/plain", ""]);
});

test.each([
  [ErrorReason.LIMIT_EXCEEDED, { limit: "body_bytes" }, 413],
  [ErrorReason.LIMIT_EXCEEDED, { limit: "message_bytes" }, 413],
  [ErrorReason.LIMIT_EXCEEDED, { limit: "json_bytes" }, 413],
  [ErrorReason.LIMIT_EXCEEDED, { limit: "inbox" }, undefined],
  [ErrorReason.DEADLINE_EXCEEDED, { limit: "body_ms" }, 408],
  [ErrorReason.DEADLINE_EXCEEDED, {}, undefined],
  [ErrorReason.INVALID_REQUEST, wrongMediaType(["a/b"], "no").metadata, 415],
  [ErrorReason.INVALID_REQUEST, {}, undefined],
  [ErrorReason.TASK_NOT_FOUND, { limit: "body_bytes" }, undefined],
] as [ErrorReason, Record<string, string>, number | undefined][])(
  "reason %i with %j is %s",
  (reason, metadata, status) => {
    expect(bodyStatusOf({ reason, metadata })).toBe(status);
  },
);
