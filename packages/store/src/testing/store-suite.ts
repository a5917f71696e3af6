import { AsyncLocalStorage } from "node:async_hooks";
import { ErrorReason, ManualClock } from "@depute/core";
import fc from "fast-check";
import { afterEach, describe, expect, test, vi } from "vitest";
import { ConstraintError, isUniqueViolation } from "../errors.ts";
import type { Migration } from "../migrations.ts";
import type { StoreSettings } from "../options.ts";
import type { SqlValue, Store, WriteTx } from "../store.ts";

/** Opens an empty store, new at each call. */
export type OpenForTests = (settings: StoreSettings) => Promise<Store>;

export interface StoreSuiteOptions {
  /** The database's type of a column of bytes. */
  readonly bytes: string;
}

interface Item {
  id: number;
  name: string;
}

const PUT = "INSERT INTO item (id, name) VALUES (?, ?)";

/** What every store does, whatever the database. Call it in a test file, with the database's way to open one. */
export function storeSuite(openStore: OpenForTests, options: StoreSuiteOptions): void {
  const migrations: Migration[] = [
    {
      id: 1,
      name: "tables of the suite",
      sql: `
        CREATE TABLE item (id BIGINT PRIMARY KEY CHECK (id >= 0), name TEXT NOT NULL UNIQUE);
        CREATE TABLE part (id BIGINT PRIMARY KEY, item_id BIGINT NOT NULL REFERENCES item (id));
        CREATE TABLE thing (id BIGINT PRIMARY KEY, whole BIGINT, fraction DOUBLE PRECISION, words TEXT, bytes ${options.bytes});
      `,
    },
  ];
  const opened: Store[] = [];
  const open = async (settings: Partial<StoreSettings> = {}) => {
    const store = await openStore({ migrations, onError: () => {}, ...settings });
    opened.push(store);
    return store;
  };
  afterEach(async () => {
    await Promise.all(opened.splice(0).map((store) => store.close()));
  });
  const put = (store: Store, id: number, name = `item ${id}`) => store.write((tx) => tx.run(PUT, [id, name]));
  const ids = (store: Store) =>
    store.read(async (tx) => (await tx.all<Item>("SELECT id FROM item ORDER BY id")).map((item) => item.id));

  describe("values", () => {
    const values: Record<string, SqlValue>[] = [
      { whole: 0 },
      { whole: -1 },
      { whole: 2 ** 53 - 1 },
      { whole: -(2 ** 53 - 1) },
      { whole: 2n ** 53n },
      { whole: 2n ** 63n - 1n },
      { whole: -(2n ** 63n) },
      { whole: null },
      { fraction: 0.1 },
      { fraction: -1.5e300 },
      { fraction: 3 },
      { words: "" },
      { words: "ü 🙂 ' \" ? ;" },
      { bytes: new Uint8Array() },
      { bytes: new Uint8Array([0, 1, 255]) },
    ];
    test.each(values)("%o comes back as it was", async (row) => {
      const store = await open();
      const [[column, value] = ["", null]] = Object.entries(row);
      await store.write((tx) => tx.run(`INSERT INTO thing (id, ${column}) VALUES (1, ?)`, [value]));
      expect(await store.read((tx) => tx.get(`SELECT ${column} FROM thing`))).toEqual(row);
      const found = await store.read((tx) => tx.all(`SELECT id FROM thing WHERE ${column} = ?`, [value]));
      expect(found).toHaveLength(value === null ? 0 : 1);
    });

    test("a small bigint comes back as a number", async () => {
      const store = await open();
      await store.write((tx) => tx.run("INSERT INTO thing (id, whole) VALUES (?, ?)", [1n, 7n]));
      expect(await store.read((tx) => tx.get("SELECT id, whole FROM thing"))).toEqual({ id: 1, whole: 7 });
    });

    test.each([Number.NaN, Number.POSITIVE_INFINITY, 2n ** 63n])("%s is refused", async (value) => {
      const store = await open();
      await expect(
        store.write((tx) => tx.run("INSERT INTO thing (id, whole) VALUES (1, ?)", [value])),
      ).rejects.toThrow();
      expect(await store.read((tx) => tx.all("SELECT id FROM thing"))).toEqual([]);
    });
  });

  describe("statements", () => {
    test("all gives every row in order, get the first or undefined, run the number of changes", async () => {
      const store = await open();
      await store.write(async (tx) => {
        for (const id of [1, 2, 3]) expect(await tx.run(PUT, [id, `item ${id}`])).toEqual({ changes: 1 });
        expect(await tx.run("UPDATE item SET name = name || '!' WHERE id > ?", [1])).toEqual({ changes: 2 });
        expect(await tx.run("DELETE FROM item WHERE id = ?", [9])).toEqual({ changes: 0 });
      });
      await store.read(async (tx) => {
        expect(await tx.all("SELECT id FROM item ORDER BY id DESC LIMIT ?", [2])).toEqual([
          { id: 3 },
          { id: 2 },
        ]);
        expect(await tx.get<Item>("SELECT * FROM item ORDER BY id DESC")).toEqual({ id: 3, name: "item 3!" });
        expect(await tx.get("SELECT * FROM item WHERE id = ?", [9])).toBeUndefined();
      });
    });

    test("lists in JSON are tables, and their parts texts", async () => {
      const store = await open();
      const list = JSON.stringify([
        ["b", "ü"],
        ["a", "'"],
      ]);
      const rows = await store.read((tx) =>
        tx.all(
          "SELECT json_extract(j.value, '$[0]') AS first, json_extract(j.value, '$[1]') AS second FROM json_each(?) j",
          [list],
        ),
      );
      expect(rows).toEqual([
        { first: "b", second: "ü" },
        { first: "a", second: "'" },
      ]);
      const named = JSON.stringify(["item 2", "item 3"]);
      await put(store, 1);
      await put(store, 2);
      expect(
        await store.read((tx) =>
          tx.all("SELECT id FROM item WHERE name IN (SELECT value FROM json_each(?))", [named]),
        ),
      ).toEqual([{ id: 2 }]);
    });

    test("RETURNING gives what was written", async () => {
      const store = await open();
      const written = await store.write((tx) => tx.get(`${PUT} RETURNING id, name`, [4, "four"]));
      expect(written).toEqual({ id: 4, name: "four" });
    });

    test.each([
      ["unique", "INSERT INTO item (id, name) VALUES (1, 'other')"],
      ["unique", "INSERT INTO item (id, name) VALUES (2, 'item 1')"],
      ["check", "INSERT INTO item (id, name) VALUES (-1, 'other')"],
      ["not_null", "INSERT INTO item (id, name) VALUES (2, NULL)"],
      ["foreign_key", "INSERT INTO part (id, item_id) VALUES (1, 99)"],
    ])("a broken constraint says that it is %s (%s), and the transaction goes on", async (kind, sql) => {
      const store = await open();
      await put(store, 1);
      await store.write(async (tx) => {
        const error = await tx.run(sql).catch((thrown: unknown) => thrown);
        expect(error).toBeInstanceOf(ConstraintError);
        expect(error).toMatchObject({ kind });
        expect(isUniqueViolation(error)).toBe(kind === "unique");
        await tx.run(PUT, [5, "five"]);
      });
      expect(await ids(store)).toEqual([1, 5]);
    });

    test.each(["COMMIT", "rollback", "BEGIN", "SAVEPOINT x", "RELEASE x", "SELECT 1; SELECT 2", "nonsense"])(
      "%s is refused",
      async (sql) => {
        const store = await open();
        await expect(store.write((tx) => tx.run(sql))).rejects.toThrow();
        await put(store, 1);
        expect(await ids(store)).toEqual([1]);
      },
    );
  });

  describe("write", () => {
    test("resolves with the function's result, which reads then see", async () => {
      const store = await open();
      expect(await store.write(async (tx) => (await tx.run(PUT, [1, "one"])).changes)).toBe(1);
      expect(await ids(store)).toEqual([1]);
    });

    test("sees its own changes", async () => {
      const store = await open();
      const seen = await store.write(async (tx) => {
        await tx.run(PUT, [1, "one"]);
        return tx.get("SELECT name FROM item WHERE id = 1");
      });
      expect(seen).toEqual({ name: "one" });
    });

    test("takes effect in the order of the calls", async () => {
      const store = await open({ maxBatch: 3 });
      const counts = await Promise.all(
        Array.from({ length: 20 }, (_, i) =>
          store.write(async (tx) => {
            await tx.run(PUT, [i, `item ${i}`]);
            return (await tx.get<{ n: number }>("SELECT count(*) AS n FROM item"))?.n;
          }),
        ),
      );
      expect(counts).toEqual(Array.from({ length: 20 }, (_, i) => i + 1));
    });

    test("of functions that may be run again keeps what succeeded, and nothing of what threw", async () => {
      const outcome = fc.constantFrom("succeeds", "refuses", "throws after a change", "is of another kind");
      const store = await open();
      await fc.assert(
        fc.asyncProperty(fc.array(outcome, { minLength: 1, maxLength: 12 }), async (outcomes) => {
          await store.write((tx) => tx.run("DELETE FROM item"));
          const results = await Promise.allSettled(
            outcomes.map((kind, id) => {
              const isRepeatable = kind !== "is of another kind";
              const fn = async (tx: WriteTx) => {
                const before = await tx.all<{ id: number }>("SELECT id FROM item ORDER BY id");
                if (kind === "refuses") throw new Error("no");
                await tx.run(PUT, [id, `item ${id}`]);
                if (kind === "throws after a change") throw new Error("no");
                return before.map((row) => row.id);
              };
              return store.write(fn, { isRepeatable });
            }),
          );
          const kept = outcomes.flatMap((kind, id) =>
            kind === "succeeds" || kind === "is of another kind" ? [id] : [],
          );
          expect(results.flatMap((one, id) => (one.status === "fulfilled" ? [id] : []))).toEqual(kept);
          // Each saw what those before it had changed.
          for (const id of kept) {
            expect(results[id]).toMatchObject({ value: kept.filter((other) => other < id) });
          }
          expect(await ids(store)).toEqual(kept);
        }),
      );
    });

    test("rolls back only the function that throws, and passes its error on", async () => {
      const store = await open();
      const failure = new Error("no");
      const results = await Promise.allSettled([
        put(store, 1),
        store.write(async (tx) => {
          await tx.run(PUT, [2, "two"]);
          throw failure;
        }),
        put(store, 1, "taken"),
        put(store, 3),
      ]);
      expect(results.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "rejected", "fulfilled"]);
      expect(results[1]).toMatchObject({ reason: failure });
      expect(await ids(store)).toEqual([1, 3]);
    });

    test("a transaction cannot be used after its end", async () => {
      const store = await open();
      const tx = await store.write(async (inner) => ({ leaked: inner }));
      await expect(tx.leaked.run(PUT, [1, "one"])).rejects.toThrow("after its end");
      expect(() => tx.leaked.afterCommit(() => {})).toThrow("after its end");
      expect(await ids(store)).toEqual([]);
    });

    test("a transaction within a transaction is refused at once", async () => {
      const store = await open();
      await store.write(async (tx) => {
        await tx.run(PUT, [1, "one"]);
        await expect(put(store, 2)).rejects.toThrow("within a transaction");
        await expect(ids(store)).rejects.toThrow("within a transaction");
      });
      await store.read(() => expect(ids(store)).rejects.toThrow("within a transaction"));
      expect(await ids(store)).toEqual([1]);
    });

    test("a function that waits for something else fails at the limit, and the next ones go on", async () => {
      const timers = new ManualClock();
      const store = await open({ timers, transactionLimitMs: 1000 });
      let arrived = () => {};
      const waits = new Promise<void>((resolve) => {
        arrived = resolve;
      });
      let leaked: Promise<unknown> | undefined;
      const stuck = store.write(async (tx) => {
        await tx.run(PUT, [1, "one"]);
        arrived();
        await new Promise<void>((resolve) => timers.after(2000, resolve));
        leaked = tx.run(PUT, [2, "two"]);
        await leaked;
      });
      const settled = expect(stuck).rejects.toMatchObject({ reason: ErrorReason.INTERNAL });
      const next = put(store, 3);
      await waits;
      timers.advance(1000);
      await settled;
      await next;
      timers.advance(1000);
      await vi.waitFor(() => expect(leaked).toBeDefined());
      await expect(leaked).rejects.toThrow("after its end");
      expect(await ids(store)).toEqual([3]);
      expect(timers.pending).toBe(0);
    });

    test("the function runs in the async context of its caller", async () => {
      const store = await open();
      const context = new AsyncLocalStorage<string>();
      const seen = await Promise.all(
        ["a", "b"].map((name) => context.run(name, () => store.write(async () => context.getStore()))),
      );
      expect(seen).toEqual(["a", "b"]);
    });

    test("more waiting writes than the limit are refused, and the others done", async () => {
      const store = await open({ maxWaiting: 2 });
      const results = await Promise.allSettled([put(store, 1), put(store, 2), put(store, 3)]);
      expect(results[2]).toMatchObject({
        status: "rejected",
        reason: { reason: ErrorReason.LIMIT_EXCEEDED, metadata: { limit: "store_waiting_writes", max: "2" } },
      });
      expect(await ids(store)).toEqual([1, 2]);
      await put(store, 3);
    });
  });

  describe("afterCommit", () => {
    test("hooks run in order, when the change can be read and before write resolves", async () => {
      const store = await open();
      const order: string[] = [];
      let seen: Promise<number[]> | undefined;
      await store.write(async (tx) => {
        tx.afterCommit(() => {
          order.push("first");
          seen = ids(store);
        });
        await tx.run(PUT, [1, "one"]);
        tx.afterCommit(() => order.push("second"));
        order.push("function");
      });
      expect(order).toEqual(["function", "first", "second"]);
      expect(await seen).toEqual([1]);
    });

    test("hooks of a function that throws never run", async () => {
      const store = await open();
      const hook = vi.fn();
      const failing = store.write(async (tx) => {
        tx.afterCommit(hook);
        throw new Error("no");
      });
      await expect(failing).rejects.toThrow("no");
      await put(store, 1);
      expect(hook).not.toHaveBeenCalled();
    });

    test("what a hook throws is reported, and changes nothing", async () => {
      const onError = vi.fn();
      const store = await open({ onError });
      const failure = new Error("no");
      const second = vi.fn();
      await store.write(async (tx) => {
        tx.afterCommit(() => {
          throw failure;
        });
        tx.afterCommit(second);
        await tx.run(PUT, [1, "one"]);
      });
      expect(onError.mock.calls).toEqual([[failure, "a hook of a transaction threw"]]);
      expect(second).toHaveBeenCalledOnce();
      expect(await ids(store)).toEqual([1]);
    });
  });

  describe("read", () => {
    test("refuses to write", async () => {
      const store = await open();
      await expect(store.read((tx) => tx.get(`${PUT} RETURNING id`, [1, "one"]))).rejects.toThrow();
      expect(await ids(store)).toEqual([]);
      await put(store, 1);
    });

    test("passes the function's error on, and the next ones go on", async () => {
      const store = await open();
      const failing = store.read(async () => {
        throw new Error("no");
      });
      await expect(failing).rejects.toThrow("no");
      expect(await ids(store)).toEqual([]);
    });

    test("never sees half of a write", async () => {
      const store = await open();
      const writes = Array.from({ length: 30 }, (_, i) =>
        store.write(async (tx) => {
          await tx.run(PUT, [2 * i, `even ${i}`]);
          await tx.run(PUT, [2 * i + 1, `odd ${i}`]);
        }),
      );
      const counts: number[] = [];
      for (let i = 0; i < 30; i++) {
        counts.push((await ids(store)).length % 2);
        await writes[i];
      }
      await Promise.all(writes);
      expect(new Set(counts)).toEqual(new Set([0]));
      expect(await ids(store)).toHaveLength(60);
    });
  });

  describe("close", () => {
    test("finishes what waits, then refuses", async () => {
      const store = await open();
      const writes = [put(store, 1), put(store, 2)];
      const read = ids(store);
      await Promise.all([store.close(), store.close()]);
      await Promise.all(writes);
      await read;
      const refused = { reason: ErrorReason.SHUTTING_DOWN };
      await expect(put(store, 3)).rejects.toMatchObject(refused);
      await expect(ids(store)).rejects.toMatchObject(refused);
    });
  });
}
