import { ErrorReason } from "@depute/core";
import { describe, expect, test, vi } from "vitest";
import { GroupCommit } from "./group-commit.ts";
import type { WriteTx } from "./store.ts";
import type { WriteConnection } from "./transaction.ts";

/** A connection that only notes what it is told; `failing` maps a step to its error. */
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
    connection,
    ...(flush && { flush }),
    maxBatch,
    maxWaiting: 100,
    transactionLimitMs: 1000,
    onError: () => {},
  });
}

test("writes of one turn share a commit, and are answered after it", async () => {
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

test("what is written when a function has run joins its commit; nothing is when it failed", async () => {
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
    tx.afterRun(() => steps.push("told"));
    throw new Error("no");
  });
  await expect(failing).rejects.toThrow("no");
  expect(steps).not.toContain("told");
});

test("who was told of a success is told when the commit undoes it", async () => {
  const { connection, failing } = fakeConnection();
  const writes = groupCommit(connection);
  const told: string[] = [];
  const write = (name: string) =>
    writes.write(async (tx) => {
      tx.afterRun(
        () => told.push(name),
        () => told.push(`not ${name}`),
      );
      await tx.run(name);
    });
  await write("a");
  failing.commit = new Error("disk");
  await Promise.allSettled([write("b"), write("c")]);
  expect(told).toEqual(["a", "b", "c", "not b", "not c"]);
});

describe("functions that may be run again", () => {
  const REPEATABLE = { isRepeatable: true };

  test("share a savepoint, in the order of the calls with others", async () => {
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

  test("stay as they are when one of them refuses before it has changed anything", async () => {
    const { connection, steps } = fakeConnection();
    const writes = groupCommit(connection);
    const write = (name: string) => writes.write((tx) => tx.run(name), REPEATABLE);
    const refusing = () =>
      writes.write(async (tx) => {
        await tx.get("SELECT 1");
        throw new Error("no");
      }, REPEATABLE);
    const outcomes = await Promise.allSettled([write("a"), refusing(), write("b")]);
    expect(outcomes.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled"]);
    expect(steps).toEqual(["begin", "savepoint", "a", "b", "release", "commit"]);
  });

  test.each([
    ["a statement that changes rows", (tx: WriteTx) => tx.run("half")],
    ["one that returns what it changed", (tx: WriteTx) => tx.get("UPDATE half RETURNING 1")],
  ])("are run again one by one when one of them throws after %s", async (_name, change) => {
    const { connection, steps } = fakeConnection();
    const writes = groupCommit(connection);
    const told: string[] = [];
    const write = (name: string) =>
      writes.write(async (tx) => {
        tx.afterRun(
          () => told.push(name),
          () => told.push(`not ${name}`),
        );
        tx.afterCommit(() => told.push(`durable ${name}`));
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
    expect(told).toEqual(["a", "not a", "a", "b", "durable a", "durable b"]);
  });

  test("are told of a commit that fails, as others are", async () => {
    const { connection } = fakeConnection({ commit: new Error("disk") });
    const writes = groupCommit(connection);
    const told: string[] = [];
    const writing = writes.write(async (tx) => {
      tx.afterRun(
        () => told.push("a"),
        () => told.push("not a"),
      );
    }, REPEATABLE);
    await expect(writing).rejects.toThrow("disk");
    expect(told).toEqual(["a", "not a"]);
  });
});

test("a batch ends at its bound", async () => {
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

test("who fails is answered after the commit too", async () => {
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
  "when %s fails, all are refused, no hook runs, and the next batch goes on",
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
      // The first one broke the batch, and the second one met a connection that still fails.
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

test("when the database gives the transaction up, those before the culprit are refused as well", async () => {
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

describe("where commits are flushed apart", () => {
  /** Flushes that end when they are told to. */
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

  test("nobody is answered before the flush, and the next batch runs meanwhile", async () => {
    const { connection, steps } = fakeConnection();
    const { flush, next } = flushes(steps);
    const writes = groupCommit(connection, 10, flush);
    const write = async (name: string) => {
      await writes.write(async (tx) => {
        tx.afterCommit(() => steps.push(`told of ${name}`));
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
    for (let left = 3; left > 0; left--) {
      next()?.resolve();
      await turns();
    }
    await Promise.all(all);
    expect(statements().slice(6)).toEqual([
      ...["told of a", "flush", "d", "commit", "told of b", "told of c", "flush", "told of d"],
    ]);
    expect(writes.durable).toBeUndefined();
  });

  test("one that fails is the end of writing and of reading", async () => {
    const { connection, steps } = fakeConnection();
    const { flush, next } = flushes(steps);
    const writes = groupCommit(connection, 10, flush);
    const told = vi.fn();
    const first = writes.write(async (tx) => {
      tx.afterCommit(told);
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
    expect(told).not.toHaveBeenCalled();
    expect(steps).not.toContain("c");
    await writes.close();
  });
});
