import { DeputeError, ErrorReason } from "@depute/core";
import { expect, it } from "vitest";
import { toConnectError } from "../errors-on-wire.ts";
import { collect, refusal } from "./refusal.ts";

const refused = toConnectError(
  new DeputeError(ErrorReason.TASK_NOT_FOUND, "no such task", {
    metadata: { task: "t-1" },
    violations: [{ field: "task_id", description: "names no task" }],
  }),
);

async function* counting(to: number, end?: unknown) {
  for (let n = 1; n <= to; n++) yield n;
  if (end !== undefined) throw end;
}

it.each([
  ["a call", () => Promise.reject(refused)],
  ["a stream", () => counting(2, refused)],
])("reads the refusal of %s", async (_, call) => {
  expect(await refusal(call())).toEqual({
    reason: "TASK_NOT_FOUND",
    metadata: { task: "t-1" },
    violations: [{ field: "task_id", description: "names no task" }],
    fields: ["task_id"],
  });
});

it.each([
  ["call", () => Promise.resolve("done")],
  ["call with an empty answer", () => Promise.resolve()],
  ["stream", () => counting(2)],
])("fails for a %s that was not refused", async (_, call) => {
  await expect(refusal(call())).rejects.toThrow("not refused");
});

it("collects a stream, or the requested number of messages", async () => {
  expect(await collect(counting(3))).toEqual([1, 2, 3]);
  expect(await collect(counting(3, refused), 2)).toEqual([1, 2]);
});
