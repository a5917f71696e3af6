import { expect, test } from "vitest";
import { detached, Memo } from "./memo.ts";

test("keeps recent entries, at most twice its size", () => {
  const memo = new Memo<number>(2);
  const all = ["a", "b", "c", "d", "e", "f"];
  for (const [i, text] of all.entries()) memo.set(text, i);
  expect(["a", "b", "f", "e"].map((text) => memo.get(text))).toEqual([undefined, undefined, 5, 4]);
});

test("keeps a frequently used entry, whatever other entries are added", () => {
  const memo = new Memo<number>(4);
  memo.set("asked", 1);
  for (let i = 0; i < 100; i++) {
    memo.set(`other ${i}`, i);
    expect(memo.get("asked")).toBe(1);
  }
});

test("a detached text equals the original", () => {
  for (const text of ["", "a", "a text of some length, to be cut", "\u20ac\ud83d\ude00"]) {
    expect(detached(text)).toBe(text);
  }
});
