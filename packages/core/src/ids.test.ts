import { describe, expect, it } from "vitest";
import { isUuid, newId } from "./ids.ts";

describe("newId", () => {
  it("creates UUIDv7 that sort in the order of their creation", () => {
    const ids = Array.from({ length: 1000 }, newId);
    expect(ids.every((id) => isUuid(id) && id[14] === "7")).toBe(true);
    expect(ids.toSorted()).toEqual(ids);
    expect(new Set(ids).size).toBe(ids.length);
  });
});

describe("isUuid", () => {
  it.each(["", "x", "0197b3f0-0000-7000-8000-00000000000", "0197b3f0-0000-7000-8000-000000000000 "])(
    "refuses %j",
    (text) => {
      expect(isUuid(text)).toBe(false);
    },
  );
});
