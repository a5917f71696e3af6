import { expect, test } from "vitest";
import { Pending } from "./in-process.ts";

const wakeUps = (topic: string, ...keys: string[]) => keys.map((key) => ({ topic, key }));

test("returns each wake-up once, and is then empty", () => {
  const pending = new Pending(2);
  for (const key of ["a", "b", "a"]) pending.add("t", key);
  pending.add("u", "a");
  expect(pending.take()).toEqual([...wakeUps("t", "a", "b"), ...wakeUps("u", "a")]);
  expect(pending.isEmpty).toBe(true);
  expect(pending.take()).toEqual([]);
});

test.each([
  { keys: ["a", "b", "c"], why: "more keys than the maximum" },
  { keys: ["a", "b", "c", "d", "e"], why: "further keys after the maximum" },
  { keys: ["a", "", "b"], why: "the key for all keys among others" },
])("is one wake-up for all keys: $why", ({ keys }) => {
  const pending = new Pending(2);
  for (const key of keys) pending.add("t", key);
  pending.add("u", "a");
  expect(pending.take()).toEqual([...wakeUps("t", ""), ...wakeUps("u", "a")]);
});
