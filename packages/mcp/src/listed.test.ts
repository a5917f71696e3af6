import { ManualClock } from "@depute/core";
import { expect, test } from "vitest";
import { Listed } from "./listed.ts";

const REPORT = { list: "tools", name: "report" } as const;

test("keeps the latest definitions that a caller listed", () => {
  const listed = new Listed(new ManualClock(0));
  listed.add("one", "tools", new Map([["report", "A"]]));
  listed.add("two", "tools", new Map([["report", "B"]]));
  listed.add("one", "prompts", new Map([["report", "C"]]));
  expect([listed.of("one", REPORT), listed.of("two", REPORT), listed.of("three", REPORT)]).toEqual([
    "A",
    "B",
    undefined,
  ]);
  listed.add("one", "tools", new Map([["report", "D"]]));
  expect(listed.of("one", REPORT)).toBe("D");
});

test("the definitions of a caller expire after a day", () => {
  const clock = new ManualClock(0);
  const listed = new Listed(clock);
  listed.add("one", "tools", new Map([["report", "A"]]));
  clock.advance(86_400_001);
  expect(listed.of("one", REPORT)).toBe(undefined);
});

test("the caller with the oldest list is evicted when the cache is full", () => {
  const listed = new Listed(new ManualClock(0));
  const many = new Map(Array.from({ length: 60_000 }, (_, i) => [`t${i}`, "A"] as const));
  listed.add("early", "tools", new Map([["report", "A"]]));
  for (const caller of ["one", "two", "three", "four"]) listed.add(caller, "tools", many);
  expect(listed.of("early", REPORT)).toBe(undefined);
  expect(listed.of("four", { list: "tools", name: "t59999" })).toBe("A");
});
