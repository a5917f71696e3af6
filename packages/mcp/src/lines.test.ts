import { expect, test } from "vitest";
import { Lines } from "./lines.ts";

/** Feeds a text to Lines in pieces of `bytes` bytes, and returns the events. */
function eventsOf(text: string, bytes: number, maxBytes = 20, endlessBytes = 1000) {
  const events: unknown[] = [];
  const lines = new Lines({
    maxBytes,
    endlessBytes,
    onLine: (line) => events.push(line),
    onOversize: ({ id }) => events.push({ oversize: id }),
    onEndless: () => events.push("endless"),
  });
  const all = Buffer.from(text);
  for (let at = 0; at < all.length; at += bytes) lines.feed(all.subarray(at, at + bytes));
  return events;
}

const LONG = `{"result":"${"x".repeat(50)}","id":4}`;

test.each([1, 3, 7, 1000])("emits lines unchanged from chunks of %i bytes", (bytes) => {
  expect(eventsOf('{"id":1}\r\n\n{"ü":"€"}\n{"id"', bytes)).toEqual(['{"id":1}', '{"ü":"€"}']);
});

test.each([1, 3, 7, 1000])(
  "reports a line over the limit by its id, and keeps the lines after it: %i bytes",
  (bytes) => {
    expect(eventsOf(`{"id":1}\n${LONG}\n{"id":5}\n`, bytes)).toEqual([
      '{"id":1}',
      { oversize: 4 },
      '{"id":5}',
    ]);
  },
);

test("a line may have at most as many bytes as the limit", () => {
  expect(eventsOf(`${"x".repeat(20)}\n${"x".repeat(21)}\n`, 4)).toEqual([
    "x".repeat(20),
    { oversize: undefined },
  ]);
});

test("reports an endless line once", () => {
  expect(eventsOf("x".repeat(5000), 100)).toEqual(["endless"]);
});
