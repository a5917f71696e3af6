import { create } from "@bufbuild/protobuf";
import { TaskSchema } from "@depute/contracts/depute/tasks/v1/task_pb";
import { expect, test } from "vitest";
import { FollowedTasks } from "./followed-tasks.ts";

const task = (id: string, lastSequence: number) =>
  create(TaskSchema, { id, lastSequence: BigInt(lastSequence) });

test.each([
  ["a first list is new as a whole", [], [task("b", 1), task("a", 4)], ["b", "a"], []],
  ["an equal list changes nothing", [task("a", 4)], [task("a", 4)], [], []],
  ["an event changes its task alone", [task("b", 1), task("a", 4)], [task("b", 1), task("a", 5)], ["a"], []],
  ["a newer task takes the place of an older one", [task("a", 4)], [task("b", 1)], ["b"], ["a"]],
  ["a list can become empty", [task("b", 1), task("a", 4)], [], [], ["b", "a"]],
])("%s", (_, earlier, later, changed, removed) => {
  const followed = new FollowedTasks();
  followed.update(earlier);
  const { tasks, removedTaskIds } = followed.update(later);
  expect(tasks.map(({ id }) => id)).toEqual(changed);
  expect(removedTaskIds).toEqual(removed);
});
