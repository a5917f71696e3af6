import { closeSync, mkdtempSync, openSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openStore } from "@depute/store";
import { DatabaseFiles, identityOf } from "@depute/store/testing";
import type { Benchmarks } from "../bench.ts";

const IN_FLIGHT = 32;

/**
 * Measures commits to a SQLite file. Also measures the check of the database files, which each commit makes
 * once.
 */
const benchmarks: Benchmarks = async () => {
  const folder = mkdtempSync(join(tmpdir(), "depute-bench-"));
  const file = join(folder, "bench.sqlite");
  const sql = "CREATE TABLE rows (id INTEGER PRIMARY KEY, value BLOB NOT NULL)";
  const store = await openStore({ file, migrations: [{ id: 1, name: "rows", sql }], onError: console.error });
  const log = openSync(`${file}-wal`, "r");
  const files = new DatabaseFiles(file, identityOf(file), log);
  const value = new Uint8Array(300);
  const putRow = () => store.write((tx) => tx.run("INSERT INTO rows (value) VALUES (?)", [value]));
  return [
    {
      name: "group commit on SQLite",
      contenders: [
        { name: "commit of one write", run: putRow },
        {
          name: `commit of ${IN_FLIGHT} writes`,
          run: () => Promise.all(Array.from({ length: IN_FLIGHT }, putRow)),
        },
        { name: "check of the files, once in each commit", run: () => files.check() },
      ],
      async close() {
        await store.close();
        closeSync(log);
        rmSync(folder, { recursive: true });
      },
    },
  ];
};
export default benchmarks;
