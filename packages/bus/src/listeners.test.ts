import { expect, test } from "vitest";
import { Pending } from "./in-process.ts";

const wakeUps = (topic: string, ...keys: string[]) => keys.map((key) => ({ topic, key }));

test("takes each wake-up once, and is empty then", () => {
  const pending = new Pending(2);
  for (const key of ["a", "b", "a"]) pending.add("t", key);
  pending.add("u", "a");
  expect(pending.take()).toEqual([...wakeUps("t", "a", "b"), ...wakeUps("u", "a")]);
  expect(pending.isEmpty).toBe(true);
  expect(pending.take()).toEqual([]);
});

test.each([
  { keys: ["a", "b", "c"], why: "more keys than are told apart" },
  { keys: ["a", "b", "c", "d", "e"], why: "keys after that" },
  { keys: ["a", "", "b"], why: "the key of everything among others" },
])("waits as one wake-up for everything: $why", ({ keys }) => {
  const pending = new Pending(2);
  for (const key of keys) pending.add("t", key);
  pending.add("u", "a");
  expect(pending.take()).toEqual([...wakeUps("t", ""), ...wakeUps("u", "a")]);
});
