import { createRevocation } from "@depute/dct";
import { describe, expect, it } from "vitest";
import { alice, engine, id, mallory } from "../testing/holders.ts";
import { pageAddress, pushOutcome, readForeignList, revokeNotification } from "./peers.ts";

const entry = createRevocation(engine, "A".repeat(43), "chain", alice, 0);

describe("a revocation endpoint's answer", () => {
  it.each<[string, unknown, number, number | undefined]>([
    ["an object that pages", { entries: [entry], nextSequence: 7 }, 1, 7],
    ["an object that is complete", { entries: [entry] }, 1, undefined],
    ["a bare array", [entry], 1, undefined],
    ["nothing revoked", { entries: [], nextSequence: 0 }, 0, 0],
    ["a malformed cursor", { entries: [entry], nextSequence: "7" }, 1, undefined],
    ["a cursor that goes back", { entries: [entry], nextSequence: -1 }, 1, undefined],
  ])("is read as %s", (_, answer, count, next) => {
    const list = readForeignList(engine, JSON.stringify(answer));
    expect(list).toMatchObject({ refused: 0 });
    expect(list?.entries).toHaveLength(count);
    expect(list?.next).toBe(next);
  });

  it.each(["", "{", "null", "7", '"list"', "{}", '{"entries":{}}'])("is malformed: %s", (text) => {
    expect(readForeignList(engine, text)).toBeUndefined();
  });

  it("drops only entries without a valid signature (R8)", () => {
    const entries = [{ ...entry, revokedBy: id(mallory) }, entry, { ...entry, scope: "block" }, null, 7, {}];
    expect(readForeignList(engine, JSON.stringify({ entries }))).toMatchObject({
      entries: [entry],
      refused: 5,
    });
  });
});

it("a notification has no id and contains the unchanged signed entry (DelegateOS 9.5)", () => {
  expect(JSON.parse(revokeNotification(entry))).toEqual({
    jsonrpc: "2.0",
    method: "delegateos/revoke",
    params: { revocation: entry },
  });
});

it("a page's address keeps the source's query", () => {
  expect(pageAddress("https://a.example/r?tenant=x", 5)).toBe("https://a.example/r?tenant=x&since=5");
  expect(pageAddress("https://a.example/r?since=9", 5)).toBe("https://a.example/r?since=5");
});

it.each([
  [200, "taken"],
  [202, "taken"],
  [204, "taken"],
  [400, "refused"],
  [422, "refused"],
  [301, "later"],
  [401, "later"],
  [404, "later"],
  [429, "later"],
  [503, "later"],
])("an answer of %i is %s", (status, outcome) => {
  expect(pushOutcome(status)).toBe(outcome);
});
