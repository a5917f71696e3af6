import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterAll, expect, test } from "vitest";
import { openStore } from "../open.ts";
import { snapshotFiles } from "./snapshot.ts";

const folder = mkdtempSync(join(tmpdir(), "depute-snapshot-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** A process that writes each number first to file 1 and then to file 2, so that file 1 is never behind file 2. */
const WRITER = `
const { DatabaseSync } = require("node:sqlite");
const files = process.argv.slice(1).map((file) => {
  const database = new DatabaseSync(file);
  database.exec("PRAGMA journal_mode = WAL; PRAGMA synchronous = OFF; CREATE TABLE IF NOT EXISTS t (n INTEGER PRIMARY KEY, filler BLOB)");
  return database.prepare("INSERT INTO t VALUES (?, zeroblob(2000))");
});
let n = 0;
const write = () => {
  n++;
  for (const insert of files) insert.run(n);
  if (n === 100) console.log("writing");
  setTimeout(write, 1);
};
write();
`;

function newest(file: string): number {
  const database = new DatabaseSync(file);
  try {
    expect(database.prepare("PRAGMA integrity_check").get()).toEqual({ integrity_check: "ok" });
    return Number(database.prepare("SELECT max(n) AS n FROM t").get()?.n);
  } finally {
    database.close();
  }
}

test("copies of files in use show one instant", async () => {
  const sources = ["a.db", "b.db"].map((name) => join(folder, name));
  const writer = spawn(process.execPath, ["-e", WRITER, ...sources], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  try {
    await once(writer.stdout, "data");
    const rounds: number[] = [];
    for (let round = 0; round < 20; round++) {
      const targets = sources.map((source) => `${source}.${round}`);
      await snapshotFiles(sources.map((source, index) => ({ source, target: targets[index] as string })));
      const [first = 0, second = 0] = targets.map(newest);
      expect([second, second + 1]).toContain(first);
      rounds.push(first);
    }
    // The snapshots differ, so the writer kept writing during the test.
    expect(new Set(rounds).size).toBeGreaterThan(1);
  } finally {
    writer.kill("SIGKILL");
    await once(writer, "exit");
  }
}, 60_000);

test("a copy has the rows that the store acknowledged, and only its owner can read it", async () => {
  const file = join(folder, "store.db");
  const store = await openStore({
    file,
    migrations: [{ id: 1, name: "t", sql: "CREATE TABLE t (n INTEGER PRIMARY KEY)" }],
    onError: () => {},
  });
  try {
    for (let n = 1; n <= 5; n++) await store.write((tx) => tx.run("INSERT INTO t VALUES (?)", [n]));
    await snapshotFiles([{ source: file, target: `${file}.copy` }]);
    expect(newest(`${file}.copy`)).toBe(5);
    expect(statSync(`${file}.copy`).mode & 0o777).toBe(0o600);
    await store.write((tx) => tx.run("INSERT INTO t VALUES (6)"));
  } finally {
    await store.close();
  }
});

test("a damaged file is refused", async () => {
  const file = join(folder, "damaged.db");
  const database = new DatabaseSync(file);
  database.exec("CREATE TABLE t (n INTEGER PRIMARY KEY, filler BLOB)");
  database.exec("INSERT INTO t VALUES (1, zeroblob(100000)), (2, zeroblob(100000))");
  database.close();
  const bytes = readFileSync(file);
  bytes.fill(0x5a, 4096, 12_288);
  writeFileSync(file, bytes);
  await expect(snapshotFiles([{ source: file, target: `${file}.copy` }])).rejects.toThrow(
    /malformed|damaged/,
  );
});

test("a file that exists is not replaced", async () => {
  const source = join(folder, "source.db");
  new DatabaseSync(source).close();
  const target = join(folder, "kept");
  writeFileSync(target, "kept");
  await expect(snapshotFiles([{ source, target }])).rejects.toThrow("EEXIST");
  expect(readFileSync(target, "utf8")).toBe("kept");
});
