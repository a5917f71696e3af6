import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { DeputeError, ErrorReason } from "./errors.ts";
import {
  DEFAULT_PAGE_SIZE,
  decodePageToken,
  encodePageToken,
  MAX_PAGE_SIZE,
  type PageFilters,
  pageSize,
} from "./page-token.ts";

const refusal = (run: () => unknown) => {
  try {
    run();
  } catch (error) {
    return error instanceof DeputeError ? error.reason : error;
  }
  return undefined;
};

describe("page tokens", () => {
  it("are decoded for the same filters, in any order", () => {
    const keys = fc.array(fc.oneof(fc.string(), fc.integer()), { maxLength: 4 });
    fc.assert(
      fc.property(keys, fc.string(), fc.bigInt(), (position, a, b) => {
        const token = encodePageToken(position, { a, b, c: undefined });
        expect(token).toMatch(/^[A-Za-z0-9_-]+$/);
        expect(decodePageToken(token, { b, a })).toEqual(position);
      }),
    );
  });

  it("mean the first page if they are empty", () => {
    expect(decodePageToken("", { a: 1 })).toBeUndefined();
  });

  const token = encodePageToken(["x"], { list: "tasks", state: 1 });
  it.each<[string, PageFilters]>([
    [token, { list: "tasks", state: 2 }],
    [token, { list: "tasks", state: "1" }],
    [token, { list: "tasks" }],
    [token, {}],
    [encodePageToken(["x"], { n: 1n }), { n: 1 }],
    ["!", {}],
    ["e30", {}],
    [btoa("[null]").replaceAll("=", ""), {}],
    ["A".repeat(5000), {}],
  ])("of another list or form are refused (%#)", (text, filters) => {
    expect(refusal(() => decodePageToken(text, filters))).toBe(ErrorReason.PAGE_TOKEN_INVALID);
  });
});

describe("pageSize", () => {
  it.each([
    [0, DEFAULT_PAGE_SIZE],
    [-5, DEFAULT_PAGE_SIZE],
    [1, 1],
    [MAX_PAGE_SIZE + 1, MAX_PAGE_SIZE],
  ])("of %i is %i", (requested, size) => {
    expect(pageSize(requested)).toBe(size);
  });
});
