import { ErrorReason, systemClock, systemTimers } from "@depute/core";
import { describe, expect, test, vi } from "vitest";
import { GroupCommit } from "./group-commit.ts";
import { CELLS } from "./row.ts";
import type { WriteTx } from "./store.ts";
import type { WriteConnection } from "./transaction.ts";

/** Returns a connection that records its calls; `failing` maps a step to its error. */
function fakeConnection(failing: Record<string, Error> = {}) {
  const steps: string[] = [];
  let inTransaction = false;
  const step = (name: string, after?: boolean) => async () => {
    steps.push(name);
    const error = failing[name];
    if (error !== undefined) throw error;
    inTransaction = after ?? inTransaction;
  };
  const connection: WriteConnection = {
    dialect: "sqlite",
    all: () => [],
    get: () => undefined,
    run: (sql) => {
      steps.push(sql);
      if (failing[sql] !== undefined) {
        inTransaction = false;
        throw failing[sql];
      }
      return { changes: 1 };
    },
    begin: step("begin", true),
    commit: step("commit", false),
    rollback: step("rollback", false),
    savepoint: step("savepoint"),
    release: step("release"),
    rollbackToSavepoint: step("back"),
    get isInTransaction() {
      return inTransaction;
    },
  };
  return { connection, steps, failing };
}

function groupCommit(connection: WriteConnection, maxBatch = 10, flush?: () => Promise<void>) {
  return new GroupCommit({
    random: () => 0,
    connection,
    ...(flush && { flush }),
    maxBatch,
    maxWaiting: 100,
    transactionLimitMs: 1000,
    timers: systemTimers,
    clock: systemClock,
    onError: () => {},
  });
}

test("writes of one turn share a commit and resolve after it", async () => {
  const { connection, steps } = fakeConnection();
  const writes = groupCommit(connection);
  const write = async (name: string) => {
    await writes.write((tx) => tx.run(name));
    steps.push(`answered ${name}`);
  };
  await Promise.all([write("a"), write("b")]);
  expect(steps).toEqual([
    ...["begin", "savepoint", "a", "release", "savepoint", "b", "release", "commit"],
    ...["answered a", "answered b"],
  ]);
});

test("a write from afterRun joins the same commit; a failing function runs no hook", async () => {
  const { connection, steps } = fakeConnection();
  const writes = groupCommit(connection);
  const more: Promise<unknown>[] = [];
  const write = (sql: string) =>
    writes.write(async (tx) => {
      tx.afterRun(() => more.push(writes.write((later) => later.run(`after ${sql}`))));
      await tx.run(sql);
    });
  await Promise.allSettled([write("a"), writes.write((tx) => tx.run("b"))]);
  await Promise.all(more);
  expect(steps.filter((step) => step !== "savepoint" && step !== "release")).toEqual([
    ...["begin", "a", "b", "after a", "commit"],
  ]);
  const failing = writes.write(async (tx) => {
    tx.afterRun(() => steps.push("calls"));
    throw new Error("no");
  });
  await expect(failing).rejects.toThrow("no");
  expect(steps).not.toContain("calls");
});

test("a failing commit calls the undo hook of each function that succeeded", async () => {
  const { connection, failing } = fakeConnection();
  const writes = groupCommit(connection);
  const calls: string[] = [];
  const write = (name: string) =>
    writes.write(async (tx) => {
      tx.afterRun(
        () => calls.push(name),
        () => calls.push(`not ${name}`),
      );
      await tx.run(name);
    });
  await write("a");
  failing.commit = new Error("disk");
  await Promise.allSettled([write("b"), write("c")]);
  expect(calls).toEqual(["a", "b", "c", "not b", "not c"]);
});

describe("repeatable functions", () => {
  const REPEATABLE = { isRepeatable: true };

  test("share a savepoint, in call order with other functions", async () => {
    const { connection, steps } = fakeConnection();
    const writes = groupCommit(connection);
    const write = (name: string, options = {}) => writes.write((tx) => tx.run(name), options);
    await Promise.all([write("a", REPEATABLE), write("b", REPEATABLE), write("c"), write("d", REPEATABLE)]);
    expect(steps).toEqual([
      ...["begin", "savepoint", "a", "b", "release"],
      ...["savepoint", "c", "release"],
      ...["savepoint", "d", "release", "commit"],
    ]);
  });

  test("keep their changes when one of them throws before it changed a row", async () => {
    const { connection, steps } = fakeConnection();
    const writes = groupCommit(connection);
    const write = (name: string) => writes.write((tx) => tx.run(name), REPEATABLE);
    const refusing = () =>
      writes.write(async (tx) => {
        await tx.get(CELLS, "SELECT 1");
        throw new Error("no");
      }, REPEATABLE);
    const outcomes = await Promise.allSettled([write("a"), refusing(), write("b")]);
    expect(outcomes.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled"]);
    expect(steps).toEqual(["begin", "savepoint", "a", "b", "release", "commit"]);
  });

  test.each([
    ["a statement that changes rows", (tx: WriteTx) => tx.run("half")],
    ["a statement that returns the changed rows", (tx: WriteTx) => tx.get(CELLS, "UPDATE half RETURNING 1")],
  ])("run again one by one when one of them throws after %s", async (_name, change) => {
    const { connection, steps } = fakeConnection();
    const writes = groupCommit(connection);
    const calls: string[] = [];
    const write = (name: string) =>
      writes.write(async (tx) => {
        tx.afterRun(
          () => calls.push(name),
          () => calls.push(`not ${name}`),
        );
        tx.afterCommit(() => calls.push(`durable ${name}`));
        await tx.run(name);
        return name;
      }, REPEATABLE);
    let runs = 0;
    const throwing = () =>
      writes.write(async (tx) => {
        runs++;
        await change(tx);
        throw new Error("no");
      }, REPEATABLE);
    const [first, second, third] = await Promise.allSettled([write("a"), throwing(), write("b")]);
    expect([first, third].map((outcome) => outcome.status === "fulfilled" && outcome.value)).toEqual([
      "a",
      "b",
    ]);
    expect(second).toMatchObject({ status: "rejected", reason: { message: "no" } });
    expect(steps.filter((step) => step !== "half")).toEqual([
      ...["begin", "savepoint", "a", "back"],
      ...["savepoint", "a", "release", "savepoint", "back"],
      ...["savepoint", "b", "release", "commit"],
    ]);
    expect(runs).toBe(2);
    expect(calls).toEqual(["a", "not a", "a", "b", "durable a", "durable b"]);
  });

  test("run their undo hooks when the commit fails", async () => {
    const { connection } = fakeConnection({ commit: new Error("disk") });
    const writes = groupCommit(connection);
    const calls: string[] = [];
    const writing = writes.write(async (tx) => {
      tx.afterRun(
        () => calls.push("a"),
        () => calls.push("not a"),
      );
    }, REPEATABLE);
    await expect(writing).rejects.toThrow("disk");
    expect(calls).toEqual(["a", "not a"]);
  });
});

test("a batch ends at its maximum size", async () => {
  const { connection, steps } = fakeConnection();
  const writes = groupCommit(connection, 2);
  await Promise.all(["a", "b", "c", "d", "e"].map((name) => writes.write((tx) => tx.run(name))));
  expect(steps.filter((step) => !["savepoint", "release"].includes(step))).toEqual(
    [
      ["begin", "a", "b", "commit"],
      ["begin", "c", "d", "commit"],
      ["begin", "e", "commit"],
    ].flat(),
  );
});

test("a failing function rejects after the commit too", async () => {
  const { connection, steps } = fakeConnection();
  const writes = groupCommit(connection);
  const failing = writes.write(async () => {
    throw new Error("no");
  });
  const answered = failing.catch(() => steps.push("answered"));
  await writes.write((tx) => tx.run("b"));
  await answered;
  expect(steps).toEqual(["begin", "savepoint", "back", "savepoint", "b", "release", "commit", "answered"]);
});

test.each(["commit", "begin", "savepoint", "release"])(
  "when %s fails, the store refuses every function, runs no hook, and serves the next batch",
  async (name) => {
    const failure = new Error("disk");
    const { connection, steps, failing } = fakeConnection({ [name]: failure });
    if (name === "release") failing.back = failure;
    const writes = groupCommit(connection);
    const hook = vi.fn();
    const results = await Promise.allSettled(
      ["a", "b"].map((sql) =>
        writes.write(async (tx) => {
          tx.afterCommit(hook);
          await tx.run(sql);
        }),
      ),
    );
    if (name === "savepoint" || name === "release") {
      // The first function made the batch fail. The second function ran on a connection that still fails, so its error
      // may differ.
      expect(results[0]).toMatchObject({ status: "rejected", reason: failure });
    }
    expect(results.map(({ status }) => status)).toEqual(["rejected", "rejected"]);
    expect(hook).not.toHaveBeenCalled();
    for (const key of Object.keys(failing)) delete failing[key];
    steps.length = 0;
    await writes.write((tx) => tx.run("c"));
    expect(steps).toEqual(["begin", "savepoint", "c", "release", "commit"]);
  },
);

test("when the database aborts the transaction, functions before the failing one are refused too", async () => {
  const full = new Error("disk full");
  const { connection, steps } = fakeConnection({ b: full });
  const writes = groupCommit(connection);
  const hook = vi.fn();
  const results = await Promise.allSettled(
    ["a", "b", "c"].map((sql) =>
      writes.write(async (tx) => {
        tx.afterCommit(hook);
        await tx.run(sql);
      }),
    ),
  );
  expect(results.map((result) => (result.status === "rejected" ? result.reason : "done"))).toEqual([
    full,
    full,
    "done",
  ]);
  expect(hook).toHaveBeenCalledTimes(1);
  expect(steps.filter((step) => step !== "savepoint" && step !== "release")).toEqual(
    [
      ["begin", "a", "b"],
      ["begin", "c", "commit"],
    ].flat(),
  );
});

describe("with a separate flush", () => {
  /** Returns a flush function. Each flush ends when the test calls `next`. */
  function flushes(steps: string[]) {
    const waiting: PromiseWithResolvers<void>[] = [];
    const flush = () => {
      steps.push("flush");
      const one = Promise.withResolvers<void>();
      waiting.push(one);
      return one.promise;
    };
    return { flush, next: () => waiting.shift() };
  }
  const turns = async () => {
    for (let i = 0; i < 5; i++) await new Promise((resolve) => setImmediate(resolve));
  };

  test("no write resolves before the flush, and the next batch runs meanwhile", async () => {
    const { connection, steps } = fakeConnection();
    const { flush, next } = flushes(steps);
    const writes = groupCommit(connection, 10, flush);
    const write = async (name: string) => {
      await writes.write(async (tx) => {
        tx.afterCommit(() => steps.push(`calls of ${name}`));
        await tx.run(name);
      });
    };
    const all = [write("a")];
    await turns();
    all.push(write("b"), write("c"));
    await turns();
    all.push(write("d"));
    await turns();
    const statements = () => steps.filter((step) => !["begin", "savepoint", "release"].includes(step));
    expect(statements()).toEqual(["a", "commit", "flush", "b", "c", "commit"]);
    for (let remainingTries = 3; remainingTries > 0; remainingTries--) {
      next()?.resolve();
      await turns();
    }
    await Promise.all(all);
    expect(statements().slice(6)).toEqual([
      ...["calls of a", "flush", "d", "commit", "calls of b", "calls of c", "flush", "calls of d"],
    ]);
    expect(writes.durable).toBeUndefined();
  });

  test("a failing flush ends all writes and reads", async () => {
    const { connection, steps } = fakeConnection();
    const { flush, next } = flushes(steps);
    const writes = groupCommit(connection, 10, flush);
    const calls = vi.fn();
    const first = writes.write(async (tx) => {
      tx.afterCommit(calls);
      await tx.run("a");
    });
    await turns();
    const read = writes.durable;
    const second = writes.write((tx) => tx.run("b"));
    await turns();
    next()?.reject(new Error("no disk"));
    const refusal = { reason: ErrorReason.DEPENDENCY_UNAVAILABLE };
    for (const one of [first, second, read]) await expect(one).rejects.toMatchObject(refusal);
    await expect(writes.write((tx) => tx.run("c"))).rejects.toMatchObject(refusal);
    await expect(writes.durable).rejects.toMatchObject(refusal);
    expect(calls).not.toHaveBeenCalled();
    expect(steps).not.toContain("c");
    await writes.close();
  });
});
