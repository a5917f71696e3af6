import { fromJson } from "@bufbuild/protobuf";
import { ValueSchema } from "@bufbuild/protobuf/wkt";
import { TaskStatus } from "@depute/contracts/depute/tasks/v1/task_pb";
import { row, text } from "@depute/store";
import { afterEach, beforeEach, expect, test } from "vitest";
import { type Bench, begin, openBench } from "../../testing/bench.ts";
import { refusal } from "../../testing/platform.ts";

let bench: Bench;
beforeEach(async () => {
  bench = await openBench();
});
afterEach(() => bench.close());

const acme = { headers: { as: "ada", "as-organization": "acme" } };
const globex = { headers: { as: "gus", "as-organization": "globex" } };

async function create(words: string, by: typeof acme, number = 0): Promise<string> {
  const draft = { agentId: "worker", description: words, input: fromJson(ValueSchema, words) };
  const { task } = await bench.tasks.createTask({ requestId: `${words} ${number}`, draft }, by);
  return task?.id ?? "";
}

async function share(words: string, by: typeof acme): Promise<void> {
  const envelope = {
    ...{ id: `context of ${words}`, data: new TextEncoder().encode(JSON.stringify(words)) },
    ttlS: 600,
    permissions: {},
  };
  await bench.contexts.shareContext({ requestId: words, envelope }, by);
}

/** Returns `table.column` for each column in which a text occurs. */
async function tablesWith(words: string): Promise<string[]> {
  const { store } = bench.runtime.context.engine;
  const tables = await store.read((tx) =>
    tx.all(row({ name: text }), "SELECT name FROM sqlite_master WHERE type = 'table'"),
  );
  const found: string[] = [];
  for (const { name } of tables) {
    const columns = await store.read((tx) =>
      tx.all(row({ name: text }), "SELECT name FROM pragma_table_info(?)", [name]),
    );
    for (const { name: column } of columns) {
      const hits = await store.read((tx) =>
        tx.all(
          row({ hit: text }),
          `SELECT 'x' AS hit FROM ${name} WHERE instr(CAST(${column} AS BLOB), CAST(? AS BLOB)) > 0 LIMIT 1`,
          [words],
        ),
      );
      if (hits.length > 0) found.push(`${name}.${column}`);
    }
  }
  return found;
}

/** Repeats the purge until no record is left. Returns the number of records that each call deleted. */
async function purge(organization: string, maxCount: number): Promise<number[]> {
  const counts: number[] = [];
  for (let more = true; more; ) {
    const answer = await bench.tasks.purgeOrganization({ organization, reason: "on request", maxCount });
    counts.push(Number(answer.deletedCount));
    more = answer.more;
  }
  return counts;
}

test("a purge deletes all records of the organization, and none of others", async () => {
  const ended = await create("acmewords", acme);
  const lease = await begin(bench, "worker");
  await bench.workers.completeAssignment({ lease, output: { full: fromJson(ValueSchema, "acmewords") } });
  const open = await create("acmewords", acme, 1);
  await share("acmewords", acme);
  const other = await create("globexwords", globex);
  await share("globexwords", globex);
  expect(await tablesWith("acmewords")).not.toEqual([]);

  const counts = await purge("acme", 10);
  expect(counts[0]).toBe(3);
  expect(await tablesWith("acmewords")).toEqual([]);
  expect(await tablesWith("acme")).toEqual([]);
  for (const taskId of [ended, open])
    expect(await refusal(bench.tasks.getTask({ taskId }))).toMatchObject({ reason: "TASK_NOT_FOUND" });
  const kept = await bench.tasks.getTask({ taskId: other });
  expect(kept.task).toMatchObject({ description: "globexwords", status: TaskStatus.PENDING });
  expect(await tablesWith("globexwords")).not.toEqual([]);
  expect(await purge("acme", 10)).toEqual([0]);
});

test("a purge takes small steps, each with at most the requested number of records", async () => {
  for (let number = 0; number < 7; number++) await create("acmewords", acme, number);
  const counts = await purge("acme", 3);
  expect(Math.max(...counts)).toBeLessThanOrEqual(3);
  expect(counts.reduce((sum, count) => sum + count, 0)).toBe(7);
  expect(await tablesWith("acmewords")).toEqual([]);
});

test("records without an organization cannot be purged, and only an operator purges", async () => {
  await create("words of none", { headers: { as: "ann", "as-organization": "" } });
  expect(await bench.tasks.purgeOrganization({ organization: "" })).toMatchObject({
    deletedCount: 0n,
    more: false,
  });
  expect(await refusal(bench.tasks.purgeOrganization({ organization: "acme" }, acme))).toMatchObject({
    reason: "CALLER_NOT_ALLOWED",
  });
  expect(await tablesWith("words of none")).not.toEqual([]);
});
