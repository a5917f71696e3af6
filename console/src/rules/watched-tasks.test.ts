import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { TaskSchema } from "@depute/contracts/depute/tasks/v1/task_pb";
import { expect, test } from "vitest";
import { applyChange } from "./watched-tasks.ts";

/** A task that was created `second` seconds after the epoch. */
const task = (id: string, second: number, lastSequence = 1) =>
  create(TaskSchema, {
    id,
    createTime: timestampFromMs(second * 1_000),
    lastSequence: BigInt(lastSequence),
  });

const shown = [task("b", 2), task("a", 1)];

test.each([
  ["a first response replaces all tasks", { tasks: [task("c", 3)], removedTaskIds: [] }, true, ["c 1"]],
  ["a new task comes first", { tasks: [task("c", 3)], removedTaskIds: [] }, false, ["c 1", "b 1", "a 1"]],
  ["a changed task keeps its place", { tasks: [task("a", 1, 5)], removedTaskIds: [] }, false, ["b 1", "a 5"]],
  ["a removed task is gone", { tasks: [], removedTaskIds: ["b"] }, false, ["a 1"]],
  ["a heartbeat changes nothing", { tasks: [], removedTaskIds: [] }, false, ["b 1", "a 1"]],
])("%s", (_, change, isFirst, expected) => {
  const tasks = applyChange(shown, change, isFirst);
  expect(tasks.map(({ id, lastSequence }) => `${id} ${lastSequence}`)).toEqual(expected);
});
