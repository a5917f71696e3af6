import { ErrorReason } from "@depute/core";
import { afterAll, afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import type { Store, StoreState } from "../index.ts";
import { openStore } from "../index.ts";
import type { Migration } from "../migrations.ts";
import { CELLS, integer, row } from "../row.ts";
import { type Cut, CuttingProxy } from "../testing/cutting-proxy.ts";
import { freeSchema, ownPostgresForTests } from "../testing/postgres-server.ts";

const postgres = await ownPostgresForTests();
afterAll(() => postgres?.stop());

const TABLE: Migration = { id: 1, name: "table", sql: "CREATE TABLE t (a INTEGER PRIMARY KEY) STRICT" };
const UNAVAILABLE = { reason: ErrorReason.DEPENDENCY_UNAVAILABLE };
const PATIENCE = { timeout: 15_000, interval: 20 };
const CUTS: readonly Cut[] = ["reset", "end", "silence"];

/** Whether the stores of the current test share their schema. */
let isShared: boolean;
let proxy: CuttingProxy;
let schema: string;
let states: StoreState[];
const opened: Store[] = [];

beforeEach(async () => {
  proxy = await CuttingProxy.start({ path: postgres?.path ?? "" });
  schema = freeSchema();
  states = [];
});
afterEach(async () => {
  proxy.restore();
  await Promise.all(opened.splice(0).map((store) => store.close()));
  await proxy.stop();
});

async function open(url = `postgres://depute@127.0.0.1:${proxy.port}/postgres`): Promise<Store> {
  const store = await openStore({
    postgres: url,
    schema,
    migrations: [TABLE],
    onError: () => {},
    onState: (state) => states.push(state),
    // Limits the time of a transaction whose connection no longer answers.
    transactionLimitMs: 1_000,
    isShared,
  });
  opened.push(store);
  return store;
}

const insertRow = (store: Store, a: number) => store.write((tx) => tx.run("INSERT INTO t VALUES (?)", [a]));
const all = (store: Store) =>
  store.read(async (tx) =>
    (await tx.all(row({ a: integer }), "SELECT a FROM t ORDER BY a")).map(({ a }) => a),
  );
const toldOf = (kind: StoreState["kind"]) =>
  vi.waitFor(() => expect(states.at(-1)?.kind).toBe(kind), PATIENCE);

/** A state of the store in which the test cuts its connection. */
interface Break {
  readonly state: string;
  /** Brings the store to the state, and then cuts the connection. Resolves to the calls that the cut interrupted. */
  readonly bring: (store: Store, how: Cut) => Promise<Promise<unknown>[]>;
  readonly isWritten?: boolean;
}

const atText =
  (text: string, call: (store: Store) => Promise<unknown>, options = {}): Break["bring"] =>
  async (store, how) => {
    const cut = proxy.cutAt(text, how, options);
    const calls = [call(store)];
    for (const one of calls) one.catch(() => {});
    await cut;
    return calls;
  };

const BREAKS: readonly Break[] = [
  {
    state: "idle",
    bring: async (store, how) => {
      await Promise.all([
        insertRow(store, 9).then(() => store.write((tx) => tx.run("DELETE FROM t WHERE a = 9"))),
        all(store),
      ]);
      proxy.cut(how);
      return [];
    },
  },
  {
    state: "open, without reads or writes",
    bring: async (_, how) => {
      proxy.cut(how);
      return [];
    },
  },
  { state: "beginning a read", bring: atText("BEGIN ISOLATION", all) },
  { state: "reading", bring: atText("SELECT a FROM t", all) },
  {
    state: "between two statements of a read",
    bring: async (store, how) => {
      const cut = Promise.withResolvers<void>();
      const call = store.read(async (tx) => {
        await tx.all(CELLS, "SELECT a FROM t");
        proxy.cut(how);
        cut.resolve();
        await new Promise((resolve) => setImmediate(resolve));
        return tx.all(CELLS, "SELECT a FROM t");
      });
      call.catch(() => {});
      await cut.promise;
      return [call];
    },
  },
  { state: "beginning a write", bring: atText("BEGIN", (store) => insertRow(store, 9)) },
  { state: "writing", bring: atText("INSERT INTO t", (store) => insertRow(store, 9)) },
  {
    state: "between two statements of a write",
    bring: async (store, how) => {
      const cut = Promise.withResolvers<void>();
      const call = store.write(async (tx) => {
        await tx.run("INSERT INTO t VALUES (9)");
        proxy.cut(how);
        cut.resolve();
        await tx.run("INSERT INTO t VALUES (10)");
      });
      call.catch(() => {});
      await cut.promise;
      return [call];
    },
  },
  {
    state: "committing, before the database receives it",
    bring: atText("COMMIT", (store) => insertRow(store, 9)),
  },
  {
    state: "committing, after the database has done it",
    bring: atText("COMMIT", (store) => insertRow(store, 9), { isAfter: true }),
    isWritten: true,
  },
];

const SHARING = [
  { schemas: "a schema of one process", shared: false },
  { schemas: "a shared schema", shared: true },
];

describe.skipIf(postgres === undefined).each(SHARING)("a broken connection to $schemas", ({ shared }) => {
  beforeEach(() => {
    isShared = shared;
  });

  describe.each(BREAKS)("while the store is $state", ({ bring, isWritten = false }) => {
    test.each(CUTS)(
      "by %s: refuses calls, reports the state, and recovers with the database",
      async (how) => {
        const store = await open();
        const outcome = await bring(store, how);
        // Until the store notices the cut, later calls may still succeed. Therefore the test waits until the
        // interrupted calls fail and the store reports the state `unavailable`.
        for (const call of outcome) await expect(call).rejects.toMatchObject(UNAVAILABLE);
        await toldOf("unavailable");
        await expect(insertRow(store, 7)).rejects.toMatchObject(UNAVAILABLE);
        await expect(all(store)).rejects.toMatchObject(UNAVAILABLE);
        expect(states.at(-1)?.kind).toBe("unavailable");
        proxy.restore();
        await toldOf("ready");
        await insertRow(store, 1);
        await insertRow(store, 2);
        expect(await all(store)).toEqual(isWritten ? [1, 2, 9] : [1, 2]);
      },
      30_000,
    );
  });

  test.each([
    "CREATE SCHEMA",
    "pg_try_advisory_lock",
    "store_owner",
    "schema_migrations",
    "CREATE TABLE t",
    "INSERT INTO schema_migrations",
    "COMMIT",
  ])(
    "while the store opens, at %s: opens once the database is back",
    async (text) => {
      const cut = proxy.cutAt(text, "reset");
      const opening = open();
      await cut;
      proxy.restore();
      const store = await opening;
      await insertRow(store, 1);
      expect(await all(store)).toEqual([1]);
    },
    30_000,
  );

  test("hooks of a commit with a lost answer follow the database's decision", async () => {
    const store = await open();
    const states: string[] = [];
    const write = (name: number, options: { isAfter: boolean }) => {
      const cut = proxy.cutAt("COMMIT", "reset", options);
      const call = store.write(async (tx) => {
        tx.afterRun(
          () => {},
          () => states.push(`undone ${name}`),
        );
        tx.afterCommit(() => states.push(`durable ${name}`));
        await tx.run("INSERT INTO t VALUES (?)", [name]);
      });
      return { call, cut };
    };
    for (const [name, isAfter] of [
      [1, true],
      [2, false],
    ] as const) {
      const { call, cut } = write(name, { isAfter });
      await expect(call).rejects.toMatchObject(UNAVAILABLE);
      await cut;
      proxy.restore();
      await toldOf("ready");
    }
    expect(states).toEqual(["durable 1", "undone 2"]);
    expect(await all(store)).toEqual([1]);
  }, 30_000);

  test("a session that Postgres keeps after a silent break ends when the next one starts", async () => {
    const store = await open();
    await insertRow(store, 1);
    proxy.cut("silence");
    await toldOf("unavailable");
    proxy.restore();
    await toldOf("ready");
    await insertRow(store, 2);
    expect(await all(store)).toEqual([1, 2]);
  }, 30_000);

  test.each(["fast", "immediate"] as const)(
    "a %s restart of Postgres delays calls and loses no data",
    async (mode) => {
      const store = await open(postgres?.url);
      await insertRow(store, 1);
      expect(await all(store)).toEqual([1]);
      const restarting = postgres?.restart(mode);
      await toldOf("unavailable");
      await restarting;
      await toldOf("ready");
      await insertRow(store, 2);
      expect(await all(store)).toEqual([1, 2]);
    },
    60_000,
  );

  test("a store that another process has used meanwhile is lost", async () => {
    const store = await open();
    await insertRow(store, 1);
    proxy.cut("reset");
    const other = await openStore({
      postgres: postgres?.url ?? "",
      schema,
      migrations: [TABLE],
      onError: () => {},
    });
    proxy.restore();
    await toldOf("lost");
    await expect(insertRow(store, 2)).rejects.toMatchObject(UNAVAILABLE);
    await other.close();
  }, 30_000);

  test("a store with a dropped schema is lost", async () => {
    const store = await open();
    await insertRow(store, 1);
    const other = await openStore({
      postgres: postgres?.url ?? "",
      schema: freeSchema(),
      migrations: [],
      onError: () => {},
    });
    await other.write((tx) => tx.run(`DROP SCHEMA ${schema} CASCADE`));
    await other.close();
    proxy.cut("reset");
    proxy.restore();
    await toldOf("lost");
  }, 30_000);
});
