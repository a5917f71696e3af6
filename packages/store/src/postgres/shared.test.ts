import { ErrorReason } from "@depute/core";
import { afterAll, afterEach, beforeEach, describe, expect, test } from "vitest";
import { openStore, type Store } from "../index.ts";
import type { Migration } from "../migrations.ts";
import { integer, row } from "../row.ts";
import { freeSchema, postgresForTests } from "../testing/postgres-server.ts";
import { storeSuite } from "../testing/store-suite.ts";

const postgres = await postgresForTests();
afterAll(() => postgres?.stop());

const onError = () => {};
const UNAVAILABLE = { reason: ErrorReason.DEPENDENCY_UNAVAILABLE };
const COUNTER: Migration = {
  id: 1,
  name: "counter",
  sql: `CREATE TABLE counter (one INTEGER PRIMARY KEY, n INTEGER NOT NULL) STRICT;
    CREATE TABLE steps (n INTEGER PRIMARY KEY, store INTEGER NOT NULL) STRICT;
    INSERT INTO counter VALUES (1, 0);`,
};
const N = row({ n: integer });

test("a SQLite file is never shared", async () => {
  const opening = openStore({ memory: true, migrations: [], onError, isShared: true });
  await expect(opening).rejects.toThrow("only a Postgres schema can be shared");
});

describe.skipIf(postgres === undefined)("a schema that processes share", () => {
  const url = postgres?.url ?? "";
  let schema: string;
  const opened: Store[] = [];

  beforeEach(() => {
    schema = freeSchema();
  });
  afterEach(async () => {
    await Promise.all(opened.splice(0).map((store) => store.close()));
  });

  async function open(
    settings: { isShared?: boolean; migrations?: readonly Migration[] } = {},
  ): Promise<Store> {
    const store = await openStore({
      postgres: url,
      schema,
      migrations: [COUNTER],
      onError,
      isShared: true,
      ...settings,
    });
    opened.push(store);
    return store;
  }
  const openSeveral = (count: number) => Promise.all(Array.from({ length: count }, () => open()));

  const count = (store: Store) => store.read(async (tx) => (await tx.get(N, "SELECT n FROM counter"))?.n);

  /** Reads the counter, writes it back plus one, and records the step. */
  const step = (store: Store, number: number) =>
    store.write(async (tx) => {
      const { n } = (await tx.get(N, "SELECT n FROM counter")) ?? { n: Number.NaN };
      await tx.run("UPDATE counter SET n = ?", [n + 1]);
      await tx.run("INSERT INTO steps VALUES (?, ?)", [n + 1, number]);
      return n + 1;
    });

  describe("has every behaviour of a store", () =>
    storeSuite(
      (settings) => openStore({ postgres: url, schema: freeSchema(), isShared: true, ...settings }),
      {
        bytes: "BYTEA",
      },
    ));

  test("stores that open at the same time apply each migration once", async () => {
    const stores = await openSeveral(5);
    const applied = await stores[0]?.read((tx) =>
      tx.all(row({ id: integer }), "SELECT id FROM schema_migrations"),
    );
    expect(applied).toEqual([{ id: 1 }]);
    for (const store of stores) expect(await count(store)).toBe(0);
  });

  test("no update is lost: each write decides on the newest rows", async () => {
    const stores = await openSeveral(3);
    const steps = 100;
    const results = await Promise.all(
      stores.flatMap((store, number) => Array.from({ length: steps }, () => step(store, number))),
    );
    const total = steps * stores.length;
    expect(results.toSorted((a, b) => a - b)).toEqual(Array.from({ length: total }, (_, i) => i + 1));
    for (const store of stores) expect(await count(store)).toBe(total);
  });

  test("a read shows every write that another store has acknowledged", async () => {
    const stores = await openSeveral(3);
    for (let n = 1; n <= 30; n++) {
      const writer = stores[n % 3] as Store;
      await step(writer, n % 3);
      expect(await Promise.all(stores.map(count))).toEqual([n, n, n]);
    }
  });

  test("a store is notified of other stores' commits before its next write, and not of its own", async () => {
    const [own, other] = (await openSeveral(2)) as [Store, Store];
    let cleared = 0;
    await step(own, 0);
    own.sharing?.onOthersCommit(() => cleared++);
    await step(own, 0);
    await own.write(async () => {});
    await expect(own.write(() => Promise.reject(new Error("refused")))).rejects.toThrow("refused");
    expect(cleared).toBe(0);
    await step(other, 1);
    let atRun = Number.NaN;
    await own.write(async () => {
      atRun = cleared;
    });
    expect({ cleared, atRun }).toEqual({ cleared: 1, atRun: 1 });
    await other.read((tx) => tx.get(N, "SELECT n FROM counter"));
    await other.write((tx) => tx.get(N, "SELECT n FROM counter"));
    await step(own, 0);
    expect(cleared).toBe(1);
  });

  test("the version grows with each commit that changes rows, and a read sees it", async () => {
    const [own, other] = (await openSeveral(2)) as [Store, Store];
    const versions = [await own.sharing?.version()];
    for (const store of [own, other, own]) {
      await step(store, 0);
      versions.push(await other.sharing?.version());
    }
    await own.write((tx) => tx.get(N, "SELECT n FROM counter"));
    versions.push(await own.sharing?.version());
    const first = versions[0] ?? Number.NaN;
    expect(versions).toEqual([first, first + 1, first + 2, first + 3, first + 3]);
  });

  test("a process that stops in a transaction loses its turn, and its changes", async () => {
    const [stopped, other] = (await openSeveral(2)) as [Store, Store];
    const isWaiting = Promise.withResolvers<void>();
    const goOn = Promise.withResolvers<void>();
    const lost = stopped.write(async (tx) => {
      await tx.run("UPDATE counter SET n = 100");
      isWaiting.resolve();
      await goOn.promise;
      await tx.run("UPDATE counter SET n = 101");
    });
    lost.catch(() => {});
    await isWaiting.promise;
    // Postgres ends the connection of the stopped store. Until then, the other store waits for its turn.
    expect(await step(other, 1)).toBe(1);
    goOn.resolve();
    await expect(lost).rejects.toMatchObject(UNAVAILABLE);
    expect(await count(other)).toBe(1);
    await expect.poll(() => step(stopped, 0).catch(() => undefined), { timeout: 10_000 }).toBe(2);
  });

  test.each([
    { first: true, second: false },
    { first: false, second: true },
  ])(
    "a store that shares (first: $first) and one that does not exclude each other",
    async ({ first, second }) => {
      const store = await open({ isShared: first });
      const waiting = open({ isShared: second });
      const winner = await Promise.race([waiting, step(store, 0)]);
      expect(winner).toBe(1);
      await store.close();
      expect(await count(await waiting)).toBe(1);
    },
    15_000,
  );

  test("a failed migration leaves the schema unlocked for the next process", async () => {
    const bad = { id: 1, name: "bad", sql: "nonsense" };
    await expect(open({ migrations: [bad] })).rejects.toThrow("nonsense");
    expect(await count(await open())).toBe(0);
  });

  test("a later migration is applied while another store is open", async () => {
    const early = await open();
    const more = { id: 2, name: "more", sql: "ALTER TABLE counter ADD COLUMN extra INTEGER" };
    const late = await open({ migrations: [COUNTER, more] });
    expect(await step(early, 0)).toBe(1);
    expect(await step(late, 1)).toBe(2);
  });

  test("an older program continues after a migration that adds a column: a call fails at most as unavailable", async () => {
    const early = await open();
    const all = "SELECT * FROM counter";
    const calls = [() => early.read((tx) => tx.get(N, all)), () => early.write((tx) => tx.get(N, all))];
    // The calls run concurrently, so every connection prepares the statement.
    const callAll = () => Promise.allSettled(calls.flatMap((call) => Array.from({ length: 10 }, call)));
    await callAll();
    const more = { id: 2, name: "more", sql: "ALTER TABLE counter ADD COLUMN extra INTEGER" };
    const late = await open({ migrations: [COUNTER, more] });
    const failures = (await callAll()).filter((outcome) => outcome.status === "rejected");
    for (const { reason } of failures) expect(reason).toMatchObject(UNAVAILABLE);
    await expect
      .poll(async () => (await callAll()).filter(({ status }) => status === "rejected"), { timeout: 10_000 })
      .toEqual([]);
    expect(await step(early, 0)).toBe(1);
    expect(await step(late, 1)).toBe(2);
  });
});
