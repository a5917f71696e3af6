import { expect, test } from "vitest";
import { createBus } from "./create.ts";
import { InProcessBus } from "./in-process.ts";

const onError = () => {};

test("in process without an address", async () => {
  expect(await createBus({ onError })).toBeInstanceOf(InProcessBus);
  expect(await createBus({ redisUrl: undefined, onError })).toBeInstanceOf(InProcessBus);
});

test.each(["http://127.0.0.1:6379", "127.0.0.1:6379", "", "localhost"])(
  "refuses %j as an address",
  async (redisUrl) => {
    await expect(createBus({ redisUrl, onError })).rejects.toThrow(TypeError);
  },
);
