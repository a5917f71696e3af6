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

const done = (): CompletionOutcome =>
  create(CompletionOutcomeSchema, { outcome: { case: "status", value: TaskStatus.COMPLETED } });
const lost = (): CompletionOutcome => {
  const info = create(ErrorInfoSchema, { reason: "LEASE_LOST", domain: "depute.dev" });
  const value = create(StatusSchema, {
    code: Code.Aborted,
    message: "gone",
    details: [anyPack(ErrorInfoSchema, info)],
  });
  return create(CompletionOutcomeSchema, { outcome: { case: "error", value } });
};
const of = (taskId: string): Completion => ({ lease: { taskId, epoch: 1n } });

/** Takes note of what is in each call. */
function recorded(
  answer: (requests: Completion[]) => CompletionOutcome[] = (requests) => requests.map(done),
) {
  const calls: (string | undefined)[][] = [];
  const completions = new Completions(async (requests) => {
    calls.push(requests.map(({ lease }) => lease?.taskId));
    return answer(requests);
  });
  return { calls, completions };
}

test("results that are there in one turn of the event loop go in one call, later ones in another", async () => {
  const { calls, completions } = recorded();
  await Promise.all(["a", "b"].map((id) => completions.add(of(id))));
  await completions.add(of("c"));
  expect(calls).toEqual([["a", "b"], ["c"]]);
});

test("no call has more than a hundred", async () => {
  const { calls, completions } = recorded();
  const ids = Array.from({ length: 201 }, (_, i) => String(i));
  expect(await Promise.all(ids.map((id) => completions.add(of(id))))).toHaveLength(201);
  expect(calls.map(({ length }) => length)).toEqual([100, 100, 1]);
});

test("what is of different groups goes in different calls", async () => {
  const { calls, completions } = recorded();
  const handed = [
    ["a", "x"],
    ["b", "y"],
    ["c", "x"],
  ] as const;
  await Promise.all(handed.map(([id, group]) => completions.add(of(id), group)));
  expect(calls).toEqual([["a", "c"], ["b"]]);
});

test("when a whole call is refused, each goes by itself and learns what is the matter with it", async () => {
  const { calls, completions } = recorded((requests) => {
    if (requests.some(({ lease }) => lease?.taskId === "bad")) {
      throw new ConnectError("too long", Code.InvalidArgument);
    }
    return requests.map(done);
  });
  const results = await Promise.allSettled(["a", "bad", "b"].map((id) => completions.add(of(id))));
  expect(results).toMatchObject([
    { status: "fulfilled" },
    { status: "rejected", reason: { code: Code.InvalidArgument } },
    { status: "fulfilled" },
  ]);
  expect(calls).toEqual([["a", "bad", "b"], ["a"], ["bad"], ["b"]]);
});

test("while the platform is away, none goes by itself", async () => {
  const { calls, completions } = recorded(() => {
    throw new ConnectError("away", Code.Unavailable);
  });
  await Promise.allSettled(["a", "b"].map((id) => completions.add(of(id))));
  expect(calls).toEqual([["a", "b"]]);
});

test("a refusal reaches whom it concerns, as the call by itself would have thrown it", async () => {
  const { completions } = recorded(() => [done(), lost()]);
  const [first, second] = await Promise.allSettled(["a", "b"].map((id) => completions.add(of(id))));
  expect(first).toEqual({ status: "fulfilled", value: TaskStatus.COMPLETED });
  const { reason } = second as PromiseRejectedResult;
  expect(reason).toMatchObject({ code: Code.Aborted, rawMessage: "gone" });
  expect((reason as ConnectError).findDetails(ErrorInfoSchema)).toMatchObject([{ reason: "LEASE_LOST" }]);
});

test.each([
  ["a call that fails", () => Promise.reject(new ConnectError("away", Code.Unavailable)), Code.Unavailable],
  ["an answer that is too short", async () => [], Code.Unknown],
])("%s fails all that is in it", async (_name, send, code) => {
  const completions = new Completions(send);
  for (const result of await Promise.allSettled(["a", "b"].map((id) => completions.add(of(id))))) {
    expect(result).toMatchObject({ status: "rejected", reason: { code } });
  }
});
