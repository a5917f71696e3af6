import { expect, test } from "vitest";
import { restartDelayMs } from "./restarts.ts";

test("a server is started again at once, then after doubled delays up to half a minute", () => {
  const delays = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 2000].map(restartDelayMs);
  expect(delays).toEqual([0, 0, 500, 1000, 2000, 4000, 8000, 16_000, 30_000, 30_000, 30_000]);
});
