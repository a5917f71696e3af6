import { expect, test } from "vitest";
import { mergedRows } from "./merged-rows.ts";

const rules = {
  idOf: ({ id }: Row) => id,
  timeOf: ({ time }: Row) => time,
  isNewer: (one: Row, other: Row) => one.state >= other.state,
};
interface Row {
  readonly id: string;
  readonly time: number;
  readonly state: number;
}

test("each object occurs once, in its newest state, the newest object first", () => {
  const head = [
    { id: "c", time: 3, state: 1 },
    { id: "b", time: 2, state: 5 },
  ];
  const older = [
    { id: "b", time: 2, state: 4 },
    { id: "c", time: 3, state: 2 },
    { id: "a", time: 1, state: 9 },
  ];
  expect(mergedRows(head, older, rules)).toEqual([
    { id: "c", time: 3, state: 2 },
    { id: "b", time: 2, state: 5 },
    { id: "a", time: 1, state: 9 },
  ]);
});
