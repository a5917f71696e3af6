import { AsyncLocalStorage } from "node:async_hooks";
import { ErrorReason, ManualClock } from "@depute/core";
import fc from "fast-check";
import { afterEach, describe, expect, test, vi } from "vitest";
import { ConstraintError, isUniqueViolation } from "../errors.ts";
import type { Migration } from "../migrations.ts";
import type { StoreSettings } from "../options.ts";
import { CELLS, integer, row, text } from "../row.ts";
import type { SqlValue, Store, WriteTx } from "../store.ts";

/** Opens an empty store; each call opens another store. */
export type OpenForTests = (settings: StoreSettings) => Promise<Store>;

export interface StoreSuiteOptions {
  /** The name of the database's type for bytes. */
  readonly bytes: string;
}

const ITEM = row({ id: integer, name: text });
const ID_ROW = row({ id: integer });
const COUNT_ROW = row({ n: integer });

const PUT = "INSERT INTO item (id, name) VALUES (?, ?)";

/** Tests the behaviour that every store must have. The test file of each database calls this function. */
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
  const insertItem = (store: Store, id: number, name = `item ${id}`) =>
    store.write((tx) => tx.run(PUT, [id, name]));
  const ids = (store: Store) =>
    store.read(async (tx) =>
      (await tx.all(ID_ROW, "SELECT id FROM item ORDER BY id")).map((item) => item.id),
    );

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
    test.each(values)("returns %o unchanged", async (row) => {
      const store = await open();
      const [[column, value] = ["", null]] = Object.entries(row);
      await store.write((tx) => tx.run(`INSERT INTO thing (id, ${column}) VALUES (1, ?)`, [value]));
      expect(await store.read((tx) => tx.get(CELLS, `SELECT ${column} FROM thing`))).toEqual(row);
      const found = await store.read((tx) =>
        tx.all(CELLS, `SELECT id FROM thing WHERE ${column} = ?`, [value]),
      );
      expect(found).toHaveLength(value === null ? 0 : 1);
    });

    test("returns a small bigint as a number", async () => {
      const store = await open();
      await store.write((tx) => tx.run("INSERT INTO thing (id, whole) VALUES (?, ?)", [1n, 7n]));
      expect(await store.read((tx) => tx.get(CELLS, "SELECT id, whole FROM thing"))).toEqual({
        id: 1,
        whole: 7,
      });
    });

    test.each([Number.NaN, Number.POSITIVE_INFINITY, 2n ** 63n])("%s is refused", async (value) => {
      const store = await open();
      await expect(
        store.write((tx) => tx.run("INSERT INTO thing (id, whole) VALUES (1, ?)", [value])),
      ).rejects.toThrow();
      expect(await store.read((tx) => tx.all(CELLS, "SELECT id FROM thing"))).toEqual([]);
    });
  });

  describe("statements", () => {
    test("all returns every row in order, get the first or undefined, run the number of changes", async () => {
      const store = await open();
      await store.write(async (tx) => {
        for (const id of [1, 2, 3]) expect(await tx.run(PUT, [id, `item ${id}`])).toEqual({ changes: 1 });
        expect(await tx.run("UPDATE item SET name = name || '!' WHERE id > ?", [1])).toEqual({ changes: 2 });
        expect(await tx.run("DELETE FROM item WHERE id = ?", [9])).toEqual({ changes: 0 });
      });
      await store.read(async (tx) => {
        expect(await tx.all(CELLS, "SELECT id FROM item ORDER BY id DESC LIMIT ?", [2])).toEqual([
          { id: 3 },
          { id: 2 },
        ]);
        expect(await tx.get(ITEM, "SELECT * FROM item ORDER BY id DESC")).toEqual({ id: 3, name: "item 3!" });
        expect(await tx.get(CELLS, "SELECT * FROM item WHERE id = ?", [9])).toBeUndefined();
      });
    });

    test("reads lists in JSON as tables, and their members as texts", async () => {
      const store = await open();
      const list = JSON.stringify([
        ["b", "ü"],
        ["a", "'"],
      ]);
      const rows = await store.read((tx) =>
        tx.all(
          CELLS,
          "SELECT json_extract(j.value, '$[0]') AS first, json_extract(j.value, '$[1]') AS second FROM json_each(?) j",
          [list],
        ),
      );
      expect(rows).toEqual([
        { first: "b", second: "ü" },
        { first: "a", second: "'" },
      ]);
      const namesJson = JSON.stringify(["item 2", "item 3"]);
      await insertItem(store, 1);
      await insertItem(store, 2);
      expect(
        await store.read((tx) =>
          tx.all(CELLS, "SELECT id FROM item WHERE name IN (SELECT value FROM json_each(?))", [namesJson]),
        ),
      ).toEqual([{ id: 2 }]);
    });

    test("RETURNING gives the written row", async () => {
      const store = await open();
      const written = await store.write((tx) => tx.get(CELLS, `${PUT} RETURNING id, name`, [4, "four"]));
      expect(written).toEqual({ id: 4, name: "four" });
    });

    test.each([
      ["unique", "INSERT INTO item (id, name) VALUES (1, 'other')"],
      ["unique", "INSERT INTO item (id, name) VALUES (2, 'item 1')"],
      ["check", "INSERT INTO item (id, name) VALUES (-1, 'other')"],
      ["not_null", "INSERT INTO item (id, name) VALUES (2, NULL)"],
      ["foreign_key", "INSERT INTO part (id, item_id) VALUES (1, 99)"],
    ])("reports a violated constraint as %s (%s), and undoes the function", async (kind, sql) => {
      const store = await open();
      await insertItem(store, 1);
      const error = await store
        .write(async (tx) => {
          await tx.run(PUT, [5, "five"]);
          await tx.run(sql);
        })
        .catch((thrown: unknown) => thrown);
      expect(error).toBeInstanceOf(ConstraintError);
      expect(error).toMatchObject({ kind });
      expect(isUniqueViolation(error)).toBe(kind === "unique");
      expect(await ids(store)).toEqual([1]);
    });

    test.each([false, true])(
      "a caught error of a statement still ends its function (repeatable: %s)",
      async (isRepeatable) => {
        const store = await open();
        await insertItem(store, 1);
        const refused: unknown[] = [];
        const failing = store.write(
          async (tx) => {
            await tx.run(PUT, [5, "five"]);
            await tx.run(PUT, [1, "again"]).catch(() => {});
            refused.push(await tx.run(PUT, [6, "six"]).catch((thrown: unknown) => thrown));
          },
          { isRepeatable },
        );
        const [outcome] = await Promise.allSettled([failing, insertItem(store, 7)]);
        expect(outcome).toMatchObject({ status: "rejected", reason: { kind: "unique" } });
        expect(refused.every((error) => isUniqueViolation(error))).toBe(true);
        expect(await ids(store)).toEqual([1, 7]);
      },
    );

    test.each(["COMMIT", "rollback", "BEGIN", "SAVEPOINT x", "RELEASE x", "SELECT 1; SELECT 2", "nonsense"])(
      "%s is refused",
      async (sql) => {
        const store = await open();
        await expect(store.write((tx) => tx.run(sql))).rejects.toThrow();
        await insertItem(store, 1);
        expect(await ids(store)).toEqual([1]);
      },
    );
  });

  describe("write", () => {
    test("resolves with the function's result, visible to later reads", async () => {
      const store = await open();
      expect(await store.write(async (tx) => (await tx.run(PUT, [1, "one"])).changes)).toBe(1);
      expect(await ids(store)).toEqual([1]);
    });

    test("sees its own changes", async () => {
      const store = await open();
      const seen = await store.write(async (tx) => {
        await tx.run(PUT, [1, "one"]);
        return tx.get(CELLS, "SELECT name FROM item WHERE id = 1");
      });
      expect(seen).toEqual({ name: "one" });
    });

    test("takes effect in the order of the calls", async () => {
      const store = await open({ maxBatch: 3 });
      const counts = await Promise.all(
        Array.from({ length: 20 }, (_, i) =>
          store.write(async (tx) => {
            await tx.run(PUT, [i, `item ${i}`]);
            return (await tx.get(COUNT_ROW, "SELECT count(*) AS n FROM item"))?.n;
          }),
        ),
      );
      expect(counts).toEqual(Array.from({ length: 20 }, (_, i) => i + 1));
    });

    test("of repeatable functions keeps the successful ones and nothing of those that threw", async () => {
      const outcome = fc.constantFrom(
        "succeeds",
        "sends",
        "sends a statement that fails",
        "sends, and is of another kind",
        "refuses",
        "throws after a change",
        "is of another kind",
      );
      const store = await open();
      await fc.assert(
        fc.asyncProperty(fc.array(outcome, { minLength: 1, maxLength: 12 }), async (outcomes) => {
          await store.write((tx) => tx.run("DELETE FROM item"));
          const results = await Promise.allSettled(
            outcomes.map((kind, id) => {
              const isRepeatable = !kind.endsWith("is of another kind");
              const fn = async (tx: WriteTx) => {
                const before = await tx.all(ID_ROW, "SELECT id FROM item ORDER BY id");
                if (kind === "refuses") throw new Error("no");
                if (kind.startsWith("sends")) tx.send(PUT, [id, `item ${id}`]);
                else await tx.run(PUT, [id, `item ${id}`]);
                if (kind === "sends a statement that fails") tx.send(PUT, [id, "taken"]);
                if (kind === "throws after a change") throw new Error("no");
                return before.map((row) => row.id);
              };
              return store.write(fn, { isRepeatable });
            }),
          );
          const committedIds = outcomes.flatMap((kind, id) =>
            ["refuses", "throws after a change", "sends a statement that fails"].includes(kind) ? [] : [id],
          );
          expect(results.flatMap((one, id) => (one.status === "fulfilled" ? [id] : []))).toEqual(
            committedIds,
          );
          // Each function saw the changes of the functions before it.
          for (const id of committedIds) {
            expect(results[id]).toMatchObject({ value: committedIds.filter((other) => other < id) });
          }
          expect(await ids(store)).toEqual(committedIds);
        }),
      );
    });

    test("rolls back only the function that throws, and rejects with its error", async () => {
      const store = await open();
      const failure = new Error("no");
      const results = await Promise.allSettled([
        insertItem(store, 1),
        store.write(async (tx) => {
          await tx.run(PUT, [2, "two"]);
          throw failure;
        }),
        insertItem(store, 1, "taken"),
        insertItem(store, 3),
      ]);
      expect(results.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "rejected", "fulfilled"]);
      expect(results[1]).toMatchObject({ reason: failure });
      expect(await ids(store)).toEqual([1, 3]);
    });

    test("refuses statements after the end of its transaction", async () => {
      const store = await open();
      const tx = await store.write(async (inner) => ({ leaked: inner }));
      await expect(tx.leaked.run(PUT, [1, "one"])).rejects.toThrow("after its end");
      expect(() => tx.leaked.afterCommit(() => {})).toThrow("after its end");
      expect(await ids(store)).toEqual([]);
    });

    test("refuses a nested transaction at once", async () => {
      const store = await open();
      await store.write(async (tx) => {
        await tx.run(PUT, [1, "one"]);
        await expect(insertItem(store, 2)).rejects.toThrow("within a transaction");
        await expect(ids(store)).rejects.toThrow("within a transaction");
      });
      await store.read(() => expect(ids(store)).rejects.toThrow("within a transaction"));
      expect(await ids(store)).toEqual([1]);
    });

    test("fails a function that waits for anything else at the limit, and serves the next ones", async () => {
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
      const next = insertItem(store, 3);
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

    test("runs the function in the caller's async context", async () => {
      const store = await open();
      const context = new AsyncLocalStorage<string>();
      const seen = await Promise.all(
        ["a", "b"].map((name) => context.run(name, () => store.write(async () => context.getStore()))),
      );
      expect(seen).toEqual(["a", "b"]);
    });

    test("refuses writes above the waiting limit, and serves the others", async () => {
      const store = await open({ maxWaiting: 2 });
      const results = await Promise.allSettled([
        insertItem(store, 1),
        insertItem(store, 2),
        insertItem(store, 3),
      ]);
      expect(results[2]).toMatchObject({
        status: "rejected",
        reason: { reason: ErrorReason.LIMIT_EXCEEDED, metadata: { limit: "store_waiting_writes", max: "2" } },
      });
      expect(await ids(store)).toEqual([1, 2]);
      await insertItem(store, 3);
    });
  });

  describe("afterCommit", () => {
    test("runs hooks in order, when the change is readable and before write resolves", async () => {
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

    test("runs no hook of a function that throws", async () => {
      const store = await open();
      const hook = vi.fn();
      const failing = store.write(async (tx) => {
        tx.afterCommit(hook);
        throw new Error("no");
      });
      await expect(failing).rejects.toThrow("no");
      await insertItem(store, 1);
      expect(hook).not.toHaveBeenCalled();
    });

    test("reports an error of a hook, and keeps the change", async () => {
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
      await expect(store.read((tx) => tx.get(CELLS, `${PUT} RETURNING id`, [1, "one"]))).rejects.toThrow();
      expect(await ids(store)).toEqual([]);
      await insertItem(store, 1);
    });

    test("rejects with the function's error, and serves the next ones", async () => {
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
    test("finishes waiting calls, then refuses others", async () => {
      const store = await open();
      const writes = [insertItem(store, 1), insertItem(store, 2)];
      const read = ids(store);
      await Promise.all([store.close(), store.close()]);
      await Promise.all(writes);
      await read;
      const refused = { reason: ErrorReason.SHUTTING_DOWN };
      await expect(insertItem(store, 3)).rejects.toMatchObject(refused);
      await expect(ids(store)).rejects.toMatchObject(refused);
    });
  });
}
