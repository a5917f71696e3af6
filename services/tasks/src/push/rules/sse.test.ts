import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { PeerFault } from "./refusal.ts";
import { MAX_EVENT_CHARS, type RawEvent, readServerSentEvents } from "./sse.ts";

async function read(chunks: readonly (string | Uint8Array)[]): Promise<RawEvent[]> {
  async function* bytes() {
    for (const chunk of chunks) yield typeof chunk === "string" ? new TextEncoder().encode(chunk) : chunk;
  }
  const events: RawEvent[] = [];
  for await (const event of readServerSentEvents(bytes())) events.push(event);
  return events;
}

const event = (name: string, data: string, id?: string) => ({ event: name, data, id });

describe("readServerSentEvents", () => {
  test.each<[string, string, RawEvent[]]>([
    ["an event", 'event: progress\ndata: {"a":1}\n\n', [event("progress", '{"a":1}')]],
    ["without spaces", "event:e\ndata:1\nid:7\n\n", [event("e", "1", "7")]],
    [
      "other line endings",
      "event: e\r\ndata: 1\r\n\r\nevent: f\rdata: 2\r\r",
      [event("e", "1"), event("f", "2")],
    ],
    ["several data lines", "data: 1\ndata: 2\n\n", [event("", "1\n2")]],
    ["comments and unknown fields", ": still here\n\nretry: 1\nevent: e\ndata: 1\n\n", [event("e", "1")]],
    ["an event without data", "event: e\n\n", []],
    ["a truncated event", "event: e\ndata: 1\n", []],
    ["a field without a colon", "data\n\n", [event("", "")]],
    ["an id with a NUL", "id: a\0b\ndata: 1\n\n", [event("", "1")]],
  ])("%s", async (_, text, events) => {
    expect(await read([text])).toEqual(events);
  });

  test("reads the same events for any chunks of the bytes", async () => {
    const text =
      'id: 1\r\nevent: partial\r\ndata: {"out":"ä€😀"}\r\n\r\n: x\n\nevent: e\ndata: 2\r\rdata: 3\n\n';
    const bytes = new TextEncoder().encode(text);
    const readEvents = await read([bytes]);
    expect(readEvents).toHaveLength(3);
    const cuts = fc.uniqueArray(fc.nat(bytes.length), { maxLength: 12 });
    await fc.assert(
      fc.asyncProperty(cuts, async (places) => {
        const at = [0, ...places.sort((a, b) => a - b), bytes.length];
        const chunks = at.slice(1).map((end, number) => bytes.slice(at[number], end));
        expect(await read(chunks)).toEqual(readEvents);
      }),
    );
  });

  test.each([
    ["a line", ["data: ", "x".repeat(MAX_EVENT_CHARS)]],
    ["many lines", Array.from({ length: 9 }, () => `data: ${"x".repeat(MAX_EVENT_CHARS / 8)}\n`)],
  ])("refuses an event that is too long: %s", async (_, chunks) => {
    await expect(read(chunks)).rejects.toThrow(PeerFault);
  });
});
