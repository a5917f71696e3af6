import { expect, test } from "vitest";
import { figureResult } from "./report.ts";
import { inTurns, middleOf } from "./turns.ts";

test.each<[values: number[], value: number, spread: number]>([
  [[5], 5, 0],
  [[3, 1, 2], 2, 1],
  [[1, 2, 3, 4, 100], 3, 2],
])("the middle of %j is %f, with a spread of %f", (values, value, spread) => {
  expect(middleOf(values)).toEqual({ value, spread });
});

test("players take turns, the first round does not count, and each round gives a quotient", async () => {
  const order: string[] = [];
  const player = (name: string, values: number[]) => ({
    name,
    async round() {
      order.push(name);
      return values.shift() ?? Number.NaN;
    },
  });
  const { figures = [] } = inTurns({
    name: "race",
    unit: "us",
    rounds: 3,
    names: ["a", "b"],
    quotients: [{ name: "a by b", of: "a", by: "b", atMost: 2 }],
    start: async () => ({
      // The machine is slower in the second round, for both.
      players: [player("a", [1000, 10, 40, 10]), player("b", [1000, 5, 20, 5])],
      stop: () => order.push("stop"),
    }),
  });
  const results = [];
  for (const figure of figures) results.push(figureResult(figure, await figure.measure()));
  expect(order.join(" ")).toBe("a b a b a b a b stop");
  expect(results.map(({ name, value, unit }) => [name, value, unit])).toEqual([
    ["a", 10, "us"],
    ["b", 5, "us"],
    ["a by b", 2, "times"],
  ]);
  expect(results[2]?.goal).toEqual({ text: "met: goal at most 2", isMet: true });
});

test("all players stop when a round fails", async () => {
  let isStopped = false;
  const { figures = [] } = inTurns({
    name: "race",
    unit: "us",
    rounds: 1,
    names: ["a"],
    start: async () => ({
      players: [{ name: "a", round: () => Promise.reject(new Error("broken")) }],
      stop: () => {
        isStopped = true;
      },
    }),
  });
  await expect(figures[0]?.measure()).rejects.toThrow("broken");
  expect(isStopped).toBe(true);
});
