import { ErrorReason } from "@depute/core";
import { afterAll, afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import type { Store, StoreState } from "../index.ts";
import { openStore } from "../index.ts";
import type { Migration } from "../migrations.ts";
import { type Cut, CuttingProxy } from "../testing/cutting-proxy.ts";
import { freeSchema, ownPostgresForTests } from "../testing/postgres-server.ts";

const postgres = await ownPostgresForTests();
afterAll(() => postgres?.stop());

const TABLE: Migration = { id: 1, name: "table", sql: "CREATE TABLE t (a INTEGER PRIMARY KEY) STRICT" };
const UNAVAILABLE = { reason: ErrorReason.DEPENDENCY_UNAVAILABLE };
const PATIENCE = { timeout: 15_000, interval: 20 };
const CUTS: readonly Cut[] = ["reset", "end", "silence"];

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
    // A statement that is lost in silence is waited for that long.
    transactionLimitMs: 1_000,
  });
  opened.push(store);
  return store;
}

const put = (store: Store, a: number) => store.write((tx) => tx.run("INSERT INTO t VALUES (?)", [a]));
const all = (store: Store) =>
  store.read(async (tx) => (await tx.all<{ a: number }>("SELECT a FROM t ORDER BY a")).map(({ a }) => a));
const toldOf = (kind: StoreState["kind"]) =>
  vi.waitFor(() => expect(states.at(-1)?.kind).toBe(kind), PATIENCE);

/** Where a connection is cut, and which values may be there afterwards beside those of the first two writes. */
interface Break {
  readonly state: string;
  /** Brings the store there; resolves, when the cut has happened, to the calls that it met. */
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
        put(store, 9).then(() => store.write((tx) => tx.run("DELETE FROM t WHERE a = 9"))),
        all(store),
      ]);
      proxy.cut(how);
      return [];
    },
  },
  {
    state: "open, with nothing read or written",
    bring: async (_, how) => {
      proxy.cut(how);
      return [];
    },
  },
  { state: "beginning to read", bring: atText("BEGIN ISOLATION", all) },
  { state: "reading", bring: atText("SELECT a FROM t", all) },
  {
    state: "between two statements of a read",
    bring: async (store, how) => {
      const cut = Promise.withResolvers<void>();
      const call = store.read(async (tx) => {
        await tx.all("SELECT a FROM t");
        proxy.cut(how);
        cut.resolve();
        await new Promise((resolve) => setImmediate(resolve));
        return tx.all("SELECT a FROM t");
      });
      call.catch(() => {});
      await cut.promise;
      return [call];
    },
  },
  { state: "beginning to write", bring: atText("BEGIN", (store) => put(store, 9)) },
  { state: "writing", bring: atText("INSERT INTO t", (store) => put(store, 9)) },
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
  { state: "committing, before the database knows", bring: atText("COMMIT", (store) => put(store, 9)) },
  {
    state: "committing, when the database has done it",
    bring: atText("COMMIT", (store) => put(store, 9), { isAfter: true }),
    isWritten: true,
  },
];

describe.skipIf(postgres === undefined)("a connection that breaks", () => {
  describe.each(BREAKS)("while the store is $state", ({ bring, isWritten = false }) => {
    test.each(CUTS)(
      "by %s: calls are refused, the state says so, and all goes on when it is back",
      async (how) => {
        const store = await open();
        const met = await bring(store, how);
        // What waits may still be served where nothing said yet that the database is gone.
        for (const call of met) await expect(call).rejects.toMatchObject(UNAVAILABLE);
        await toldOf("unavailable");
        await expect(put(store, 7)).rejects.toMatchObject(UNAVAILABLE);
        await expect(all(store)).rejects.toMatchObject(UNAVAILABLE);
        expect(states.at(-1)?.kind).toBe("unavailable");
        proxy.restore();
        await toldOf("ready");
        await put(store, 1);
        await put(store, 2);
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
    "while the store opens, at %s: it opens when the database is back",
    async (text) => {
      const cut = proxy.cutAt(text, "reset");
      const opening = open();
      await cut;
      proxy.restore();
      const store = await opening;
      await put(store, 1);
      expect(await all(store)).toEqual([1]);
    },
    30_000,
  );

  test("hooks of a commit whose answer was lost run as the database decided", async () => {
    const store = await open();
    const told: string[] = [];
    const write = (name: number, options: { isAfter: boolean }) => {
      const cut = proxy.cutAt("COMMIT", "reset", options);
      const call = store.write(async (tx) => {
        tx.afterRun(
          () => {},
          () => told.push(`undone ${name}`),
        );
        tx.afterCommit(() => told.push(`durable ${name}`));
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
    expect(told).toEqual(["durable 1", "undone 2"]);
    expect(await all(store)).toEqual([1]);
  }, 30_000);

  test("a session that Postgres still holds, as its end was lost in silence, gives way to the next one", async () => {
    const store = await open();
    await put(store, 1);
    proxy.cut("silence");
    await toldOf("unavailable");
    proxy.restore();
    await toldOf("ready");
    await put(store, 2);
    expect(await all(store)).toEqual([1, 2]);
  }, 30_000);

  test.each(["fast", "immediate"] as const)(
    "a %s restart of Postgres costs no more than its time",
    async (mode) => {
      const store = await open(postgres?.url);
      await put(store, 1);
      expect(await all(store)).toEqual([1]);
      const restarting = postgres?.restart(mode);
      await toldOf("unavailable");
      await restarting;
      await toldOf("ready");
      await put(store, 2);
      expect(await all(store)).toEqual([1, 2]);
    },
    60_000,
  );

  test("a store that another process has taken meanwhile is lost", async () => {
    const store = await open();
    await put(store, 1);
    proxy.cut("reset");
    const other = await openStore({
      postgres: postgres?.url ?? "",
      schema,
      migrations: [TABLE],
      onError: () => {},
    });
    proxy.restore();
    await toldOf("lost");
    await expect(put(store, 2)).rejects.toMatchObject(UNAVAILABLE);
    await other.close();
  }, 30_000);

  test("a store whose schema is dropped is lost", async () => {
    const store = await open();
    await put(store, 1);
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
