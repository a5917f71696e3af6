import { DeputeError, ErrorReason, systemTimers, type Timers } from "@depute/core";
import { Client } from "pg";
import { afterAll, describe, expect, it, test } from "vitest";
import { againAfterConflicts, FIRST_WAIT_MS, MAX_REPEATS } from "./conflicts.ts";
import { ConflictError, isStoreFailure } from "./errors.ts";
import { openStore } from "./open.ts";
import { integer, row } from "./row.ts";
import type { Store, WriteTx } from "./store.ts";
import { freeSchema, postgresForTests } from "./testing/index.ts";

describe("a write after a conflict", () => {
  /** The waits that the store requested from `timers`, in milliseconds. These timers call back at once. */
  const waits: number[] = [];
  const timers: Timers = {
    ...systemTimers,
    after: (ms, fn) => {
      waits.push(ms);
      queueMicrotask(fn);
      return () => {};
    },
  };

  it("runs again a limited number of times, after random waits whose limit doubles", async () => {
    waits.length = 0;
    let runs = 0;
    const write = async () => {
      runs++;
      throw new ConflictError(undefined);
    };
    await expect(againAfterConflicts(write, { timers, random: () => 0.5 })).rejects.toThrow("call again");
    expect(runs).toBe(1 + MAX_REPEATS);
    expect(waits).toEqual([1, 2, 4, 8, 16].map((factor) => 0.5 * FIRST_WAIT_MS * factor));
  });

  it("does not run again for another error", async () => {
    waits.length = 0;
    const write = () => Promise.reject(new Error("another"));
    await expect(againAfterConflicts(write, { timers, random: () => 0.5 })).rejects.toThrow("another");
    expect(waits).toEqual([]);
  });

  it("is refused as unavailable, and does not count as a failure of the store", () => {
    const error = new ConflictError(undefined);
    expect(error).toBeInstanceOf(DeputeError);
    expect(error.reason).toBe(ErrorReason.DEPENDENCY_UNAVAILABLE);
    expect(isStoreFailure(error)).toBe(false);
  });
});

const postgres = await postgresForTests();
afterAll(() => postgres?.stop());

/**
 * Returns the SQL of a table, and of a function `conflict` whose first `failures` calls fail with a serialization
 * failure. A sequence counts the calls, because Postgres does not roll sequences back.
 */
const sqlOf = (failures: number) => `
CREATE TABLE counts (id BIGINT PRIMARY KEY, n BIGINT NOT NULL);
INSERT INTO counts VALUES (1, 0), (2, 0);
CREATE SEQUENCE runs;
CREATE FUNCTION conflict() RETURNS BIGINT LANGUAGE plpgsql AS $$ BEGIN
  IF nextval('runs') <= ${failures} THEN RAISE EXCEPTION 'conflict' USING ERRCODE = '40001'; END IF;
  RETURN 1;
END $$`;
const COUNT = row({ n: integer });
const ONE = row({ one: integer });

describe.runIf(postgres !== undefined)("on Postgres", () => {
  const stores: Store[] = [];
  afterAll(() => Promise.all(stores.map((store) => store.close())));
  const open = async (failures: number, schema = freeSchema()) => {
    const store = await openStore({
      ...{ postgres: postgres?.url ?? "", schema, random: () => 0 },
      migrations: [{ id: 1, name: "counts", sql: "SELECT 1", postgres: sqlOf(failures) }],
      onError: (error) => expect.fail(String(error)),
    });
    stores.push(store);
    return store;
  };
  const add = (tx: WriteTx, id: number) => tx.run("UPDATE counts SET n = n + 1 WHERE id = ?", [id]);
  const counts = async (store: Store) => {
    const rows = await store.read((tx) => tx.all(COUNT, "SELECT n FROM counts ORDER BY id"));
    return rows.map(({ n }) => n);
  };

  // Each commit may run a repeatable write twice: in the savepoint that the write shares with other writes,
  // then in a separate savepoint. A write therefore survives up to 2 * (1 + MAX_REPEATS) - 1 conflicts.
  test.each([
    { failures: 0, isRepeatable: true, isDone: true },
    { failures: 3, isRepeatable: true, isDone: true },
    { failures: 2 * (1 + MAX_REPEATS) - 1, isRepeatable: true, isDone: true },
    { failures: 2 * (1 + MAX_REPEATS), isRepeatable: true, isDone: false },
    { failures: 1, isRepeatable: false, isDone: false },
  ])("after $failures conflicts a write (repeatable: $isRepeatable) is done: $isDone", async (given) => {
    const store = await open(given.failures);
    let hooks = 0;
    const writing = store.write(
      async (tx) => {
        tx.afterCommit(() => hooks++);
        await add(tx, 1);
        await tx.get(ONE, "SELECT conflict() AS one");
      },
      { isRepeatable: given.isRepeatable },
    );
    // The write `other` joins the same commit, and keeps its change even if `writing` fails.
    const other = store.write((tx) => add(tx, 2), { isRepeatable: true });
    const [outcome] = await Promise.allSettled([writing, other]);
    if (outcome.status === "rejected") expect(outcome.reason).toBeInstanceOf(ConflictError);
    expect(outcome.status === "fulfilled").toBe(given.isDone);
    expect(hooks).toBe(given.isDone ? 1 : 0);
    expect(await counts(store)).toEqual([given.isDone ? 1 : 0, 1]);
  });

  test("a write that a deadlock ends is done after the other transaction", async () => {
    const schema = freeSchema();
    const store = await open(0, schema);
    const other = new Client({ connectionString: postgres?.url, options: `-c search_path=${schema}` });
    await other.connect();
    // Postgres aborts the transaction of the connection that checks for deadlocks first. The connection `other` checks
    // only after 60 s, so Postgres aborts the store's transaction.
    await other.query("SET deadlock_timeout = '60s'");
    await other.query("BEGIN");
    await other.query("UPDATE counts SET n = n + 1 WHERE id = 2");
    const runs: number[] = [];
    const writing = store.write(
      async (tx) => {
        runs.push(1);
        await add(tx, 1);
        await add(tx, 2);
      },
      { isRepeatable: true },
    );
    const isWaiting = async () =>
      (
        await other.query(
          "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND application_name = $1",
          [`depute ${schema}`],
        )
      ).rows.length > 0;
    while (!(await isWaiting()));
    await other.query("UPDATE counts SET n = n + 1 WHERE id = 1");
    await other.query("COMMIT");
    await writing;
    await other.end();
    expect(runs.length).toBeGreaterThan(1);
    expect(await counts(store)).toEqual([2, 2]);
  });
});
