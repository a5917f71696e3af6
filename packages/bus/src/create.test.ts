import { expect, test } from "vitest";
import { createBus } from "./create.ts";
import { InProcessBus } from "./in-process.ts";

const onError = () => {};

test("in process without an address", () => {
  expect(createBus({ onError })).toBeInstanceOf(InProcessBus);
  expect(createBus({ redisUrl: undefined, onError })).toBeInstanceOf(InProcessBus);
});

test.each(["http://127.0.0.1:6379", "127.0.0.1:6379", "", "localhost"])(
  "refuses %j as an address",
  (redisUrl) => {
    expect(() => createBus({ redisUrl, onError })).toThrow(TypeError);
  },
);
