import { create } from "@bufbuild/protobuf";
import { anyPack } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError } from "@connectrpc/connect";
import { TaskStatus } from "@depute/contracts/depute/tasks/v1/task_pb";
import {
  type CompletionOutcome,
  CompletionOutcomeSchema,
} from "@depute/contracts/depute/tasks/v1/worker_service_pb";
import { ErrorInfoSchema } from "@depute/contracts/google/rpc/error_details_pb";
import { StatusSchema } from "@depute/contracts/google/rpc/status_pb";
import { expect, test } from "vitest";
import { type Completion, Completions } from "./completions.ts";

const completed = (): CompletionOutcome =>
  create(CompletionOutcomeSchema, { outcome: { case: "status", value: TaskStatus.COMPLETED } });
const leaseLost = (): CompletionOutcome => {
  const info = create(ErrorInfoSchema, { reason: "LEASE_LOST", domain: "depute.dev" });
  const value = create(StatusSchema, {
    code: Code.Aborted,
    message: "gone",
    details: [anyPack(ErrorInfoSchema, info)],
  });
  return create(CompletionOutcomeSchema, { outcome: { case: "error", value } });
};
const completionOf = (taskId: string): Completion => ({ lease: { taskId, epoch: 1n } });

/** Returns a batcher that records the items of each call. */
function recorded(
  answer: (requests: Completion[]) => CompletionOutcome[] = (requests) => requests.map(completed),
) {
  const calls: (string | undefined)[][] = [];
  const completions = new Completions(async (requests) => {
    calls.push(requests.map(({ lease }) => lease?.taskId));
    return answer(requests);
  });
  return { calls, completions };
}

test("results of one turn of the event loop share a call, later ones take another", async () => {
  const { calls, completions } = recorded();
  await Promise.all(["a", "b"].map((id) => completions.add(completionOf(id))));
  await completions.add(completionOf("c"));
  expect(calls).toEqual([["a", "b"], ["c"]]);
});

test("a call has at most a hundred items", async () => {
  const { calls, completions } = recorded();
  const ids = Array.from({ length: 201 }, (_, i) => String(i));
  expect(await Promise.all(ids.map((id) => completions.add(completionOf(id))))).toHaveLength(201);
  expect(calls.map(({ length }) => length)).toEqual([100, 100, 1]);
});

test("items of different groups are in different calls", async () => {
  const { calls, completions } = recorded();
  const handed = [
    ["a", "x"],
    ["b", "y"],
    ["c", "x"],
  ] as const;
  await Promise.all(handed.map(([id, group]) => completions.add(completionOf(id), group)));
  expect(calls).toEqual([["a", "c"], ["b"]]);
});

test("when a whole call is refused, each item is sent alone and gets its own error", async () => {
  const { calls, completions } = recorded((requests) => {
    if (requests.some(({ lease }) => lease?.taskId === "bad")) {
      throw new ConnectError("too long", Code.InvalidArgument);
    }
    return requests.map(completed);
  });
  const results = await Promise.allSettled(["a", "bad", "b"].map((id) => completions.add(completionOf(id))));
  expect(results).toMatchObject([
    { status: "fulfilled" },
    { status: "rejected", reason: { code: Code.InvalidArgument } },
    { status: "fulfilled" },
  ]);
  expect(calls).toEqual([["a", "bad", "b"], ["a"], ["bad"], ["b"]]);
});

test("while the platform is unreachable, no item is sent alone", async () => {
  const { calls, completions } = recorded(() => {
    throw new ConnectError("away", Code.Unavailable);
  });
  await Promise.allSettled(["a", "b"].map((id) => completions.add(completionOf(id))));
  expect(calls).toEqual([["a", "b"]]);
});

test("a refusal rejects its own item, with the error of a single call", async () => {
  const { completions } = recorded(() => [completed(), leaseLost()]);
  const [first, second] = await Promise.allSettled(["a", "b"].map((id) => completions.add(completionOf(id))));
  expect(first).toEqual({ status: "fulfilled", value: TaskStatus.COMPLETED });
  const { reason } = second as PromiseRejectedResult;
  expect(reason).toMatchObject({ code: Code.Aborted, rawMessage: "gone" });
  expect((reason as ConnectError).findDetails(ErrorInfoSchema)).toMatchObject([{ reason: "LEASE_LOST" }]);
});

test.each([
  ["a failing call", () => Promise.reject(new ConnectError("away", Code.Unavailable)), Code.Unavailable],
  ["an answer that is too short", async () => [], Code.Unknown],
])("%s fails all its items", async (_name, send, code) => {
  const completions = new Completions(send);
  for (const result of await Promise.allSettled(["a", "b"].map((id) => completions.add(completionOf(id))))) {
    expect(result).toMatchObject({ status: "rejected", reason: { code } });
  }
});
