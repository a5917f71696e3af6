import { create } from "@bufbuild/protobuf";
import { EnvelopeSchema } from "@depute/contracts/asp/v0/envelope_pb";
import { SessionState } from "@depute/contracts/asp/v0/session_pb";
import { expect, test } from "vitest";
import { RecentMessages } from "./recent.ts";

const row = (ordinal: number) => ({
  ordinal,
  receiveMs: 0,
  state: SessionState.CONVERSING,
  envelope: create(EnvelopeSchema),
});
const ordinals = (recent: RecentMessages, after: number, limit = 100) =>
  recent.after("s", after, limit)?.map(({ ordinal }) => ordinal);

test("the cache returns the next messages without gaps, and nothing for older or newer positions", () => {
  const recent = new RecentMessages();
  for (let ordinal = 1; ordinal <= 20; ordinal++) recent.add("s", row(ordinal), 10);
  expect(ordinals(recent, 18)).toEqual([19, 20]);
  expect(ordinals(recent, 4)).toEqual(Array.from({ length: 16 }, (_, i) => i + 5));
  expect(ordinals(recent, 4, 2)).toEqual([5, 6]);
  expect(ordinals(recent, 3)).toBeUndefined();
  expect(ordinals(recent, 20)).toBeUndefined();
  // Message 21 is missing, because another process appended it.
  recent.add("s", row(22), 10);
  expect(ordinals(recent, 20)).toBeUndefined();
  expect(ordinals(recent, 21)).toEqual([22]);
});

test("long messages and old sessions are evicted", () => {
  const recent = new RecentMessages();
  recent.add("s", row(1), 10);
  recent.add("s", row(2), 20_000);
  expect(ordinals(recent, 0)).toBeUndefined();
  recent.add("s", row(3), 10);
  for (let other = 0; other < 256; other++) recent.add(`other ${other}`, row(1), 10);
  expect(ordinals(recent, 2)).toBeUndefined();
});
