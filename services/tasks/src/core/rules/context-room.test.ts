import { expect, test } from "vitest";
import { contextRoom, limitWithoutRoom, noRoom } from "./context-room.ts";

const ROOM = { bytes: 100, number: 10, ofOwner: 3 };

test.each([
  [
    "each limit allows its full value",
    { bytes: 90, number: 9, ofOwner: 2 },
    { bytes: 10, number: 1 },
    undefined,
  ],
  [
    "the limit of bytes is checked first",
    { bytes: 91, number: 10, ofOwner: 3 },
    { bytes: 10, number: 1 },
    "bytes",
  ],
  [
    "the limit of the number is checked second",
    { bytes: 0, number: 9, ofOwner: 3 },
    { bytes: 10, number: 2 },
    "number",
  ],
  [
    "the limit of one owner is checked last",
    { bytes: 0, number: 0, ofOwner: 2 },
    { bytes: 0, number: 2 },
    "ofOwner",
  ],
] as const)("%s", (_, use, more, limit) => {
  expect(limitWithoutRoom(use, more, ROOM)).toBe(limit);
});

test("one owner has a tenth of the maximum number, and `local` all of it", () => {
  expect(contextRoom(7, false)).toEqual({ bytes: 7, number: 10_000, ofOwner: 1_000 });
  expect(contextRoom(7, true)).toEqual({ bytes: 7, number: 10_000, ofOwner: 10_000 });
});

test.each([
  ["bytes", { limit: "context_memory.bytes", max: "100" }],
  ["number", { limit: "context_memory.number", max: "10" }],
  ["ofOwner", { limit: "context_memory.of_owner", max: "3" }],
] as const)("the refusal names the limit: %s", (limit, metadata) => {
  expect(noRoom(limit, ROOM)).toMatchObject({ metadata });
});
