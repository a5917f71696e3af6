import { expect, test } from "vitest";
import { checksum, type Migration, MigrationError, pendingMigrations } from "./migrations.ts";

const migration = (id: number, sql = `CREATE TABLE t${id} (a)`): Migration => ({
  id,
  name: `step ${id}`,
  sql,
});
const appliedTo = (module: string, ...ids: number[]) =>
  ids.map((id) => ({ module, id, checksum: checksum(migration(id)) }));
const applied = (...ids: number[]) => appliedTo("", ...ids);

test.each([
  { known: [], expected: [1, 2, 5] },
  { known: [1], expected: [2, 5] },
  { known: [1, 2, 5], expected: [] },
])("after $known, $expected are pending", ({ known, expected }) => {
  const pending = pendingMigrations([migration(1), migration(2), migration(5)], applied(...known));
  expect(pending.map(({ id }) => id)).toEqual(expected);
});

test("an empty list fits an empty database", () => {
  expect(pendingMigrations([], [])).toEqual([]);
});

test.each([
  {
    why: "changed",
    list: [migration(1, "CREATE TABLE other (a)"), migration(2)],
    known: [1],
    says: "1 (step 1) was changed",
  },
  { why: "missing", list: [migration(2), migration(3)], known: [1], says: "migration 1 was applied" },
  {
    why: "missing in between",
    list: [migration(1), migration(3)],
    known: [1, 2],
    says: "migration 2 was applied",
  },
  {
    why: "put in before",
    list: [migration(1), migration(2), migration(3)],
    known: [1, 3],
    says: "2 (step 2) was never",
  },
  {
    why: "newer database",
    list: [migration(1)],
    known: [1, 2],
    says: "newer than this program, which ends at 1",
  },
  { why: "newer database, empty program", list: [], known: [1], says: "newer than this program" },
  { why: "a duplicate id", list: [migration(1), migration(1)], known: [], says: "1 follows 1" },
  { why: "descending ids", list: [migration(2), migration(1)], known: [], says: "1 follows 2" },
  { why: "id zero", list: [migration(0)], known: [], says: "0 follows 0" },
  { why: "id with a fraction", list: [migration(1.5)], known: [], says: "1.5 follows 0" },
  {
    why: "changed for Postgres alone",
    list: [{ ...migration(1), postgres: "CREATE TABLE t1 (a JSONB)" }],
    known: [1],
    says: "1 (step 1) was changed",
  },
  {
    why: "deferred constraint",
    list: [migration(1, "CREATE TABLE t (a REFERENCES u (a) DEFERRABLE Initially\n DEFERRED)")],
    known: [],
    says: "deferred constraint",
  },
])("refuses: $why", ({ list, known, says }) => {
  const check = () => pendingMigrations(list, applied(...known));
  expect(check).toThrow(MigrationError);
  expect(check).toThrow(says);
});

test("applies modules in order, each with its own step numbers", () => {
  const modules = { tasks: [migration(1), migration(2)], reviews: [migration(1)], push: [] };
  const places = (appliedMigrations: ReturnType<typeof applied>) =>
    pendingMigrations(modules, appliedMigrations).map(({ module, id }) => `${module}/${id}`);
  expect(places([])).toEqual(["tasks/1", "tasks/2", "reviews/1"]);
  expect(places([...appliedTo("reviews", 1), ...appliedTo("tasks", 1)])).toEqual(["tasks/2"]);
  expect(places([...appliedTo("reviews", 1), ...appliedTo("tasks", 1, 2)])).toEqual([]);
});

test.each([
  { why: "a module that the program lacks", known: appliedTo("gone", 1), says: 'the module "gone"' },
  { why: "one list instead of modules", known: applied(1), says: 'the module ""' },
  {
    why: "a step under another module's name",
    known: appliedTo("reviews", 1, 2),
    says: "reviews/2, newer than this program, which ends at reviews/1",
  },
])("refuses $why", ({ known, says }) => {
  const modules = { tasks: [migration(1), migration(2)], reviews: [migration(1)] };
  expect(() => pendingMigrations(modules, known)).toThrow(says);
});

test("the checksum covers the texts of both dialects", () => {
  const [one, other] = [
    { ...migration(1), sql: "A", postgres: "B" },
    { ...migration(1), sql: "AB" },
  ];
  expect(checksum(one)).not.toBe(checksum(other));
  expect(checksum(one)).not.toBe(checksum({ ...one, postgres: "C" }));
});
