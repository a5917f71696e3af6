import { systemClock, systemTimers } from "@depute/core";
import { openStore } from "@depute/store";
import { freeSchema, postgresForTests } from "@depute/store/testing";
import { afterAll, afterEach, describe, expect, test } from "vitest";
import { commonSettings } from "./common-settings.ts";
import { createLogger } from "./log.ts";
import { REPLICA_MIGRATIONS, ReplicaTable } from "./replica-table.ts";
import { readSettings } from "./settings.ts";

const postgres = await postgresForTests();
afterAll(() => postgres?.stop());

const tables: ReplicaTable[] = [];
afterEach(async () => {
  await Promise.all(tables.splice(0).map((table) => table.close()));
});

async function openTable(prefix: string, args: readonly string[] = []): Promise<ReplicaTable> {
  const shared = ["--replicated", "--postgres-url", postgres?.url ?? "", "--postgres-schema-prefix", prefix];
  const common = readSettings(commonSettings, prefix === "" ? args : [...shared, ...args], { name: "test" });
  const log = createLogger({ level: "silent", name: "test" });
  const table = await ReplicaTable.open(common, {
    version: "1.2.3",
    ...{ clock: systemClock, timers: systemTimers, log },
  });
  tables.push(table);
  return table;
}

const source = (
  service: string,
  port: number,
  more: { isServing?: () => boolean; leases?: string[]; features?: string[] } = {},
) => ({
  service,
  address: `http://127.0.0.1:${port}`,
  isServing: more.isServing ?? (() => true),
  leases: () => more.leases ?? [],
  ...(more.features && { features: more.features }),
});

test("a process without replicas lists its own services", async () => {
  const table = await openTable("");
  table.join(source("registry", 8081));
  table.join(source("tasks", 8082, { isServing: () => false }));
  expect(await table.list()).toMatchObject([
    { service: "registry", address: "http://127.0.0.1:8081", version: "1.2.3", status: "serving" },
    { service: "tasks", address: "http://127.0.0.1:8082", version: "1.2.3", status: "not serving" },
  ]);
});

describe.skipIf(postgres === undefined)("processes that share a database", () => {
  const prefix = () => freeSchema().slice(0, 30);

  test("list each other, with their states and leases, until they end", async () => {
    const schemas = prefix();
    const [first, second] = await Promise.all([openTable(schemas), openTable(schemas)]);
    first.join(source("tokens", 8083, { leases: ["background"], features: ["one", "two"] }));
    second.join(source("tokens", 8093, { isServing: () => false }));
    const listed = () => second.list();
    await expect.poll(async () => (await listed()).length, { timeout: 10_000 }).toBe(2);
    expect(await first.list()).toMatchObject([
      {
        address: "http://127.0.0.1:8083",
        status: "serving",
        leases: ["background"],
        features: ["one", "two"],
      },
      { address: "http://127.0.0.1:8093", status: "not serving", leases: [], features: [] },
    ]);
    await first.close();
    expect(await listed()).toMatchObject([{ address: "http://127.0.0.1:8093" }]);
  });

  test.each([
    { secondsAgo: 5, status: "serving" },
    { secondsAgo: 15, status: "lost" },
  ])("show a replica that reported $secondsAgo seconds ago as $status", async ({ secondsAgo, status }) => {
    const schemas = prefix();
    const table = await openTable(schemas);
    const store = await openStore({
      ...{ postgres: postgres?.url ?? "", schema: `${schemas}_cluster`, isShared: true },
      migrations: REPLICA_MIGRATIONS,
      onError: () => {},
    });
    await store.write((tx) =>
      tx.run(
        `INSERT INTO replicas (id, service, address, version, serving, leases, start_ms, report_ms)
         VALUES ('r', 'tasks', 'http://127.0.0.1:1', '1', 1, '[]', 0,
           CAST(extract(epoch FROM clock_timestamp()) * 1000 AS bigint) - ${secondsAgo * 1_000})`,
      ),
    );
    await store.close();
    // The statement is one of a version that does not know features.
    expect(await table.list()).toMatchObject([{ id: "r", status, features: [] }]);
  });
});
