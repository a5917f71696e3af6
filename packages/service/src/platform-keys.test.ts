import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { encodeBase64Url, systemClock, systemTimers } from "@depute/core";
import { openStore, row, text } from "@depute/store";
import { freeSchema, postgresForTests } from "@depute/store/testing";
import { afterAll, afterEach, beforeEach, describe, expect, it } from "vitest";
import { createLogger } from "./log.ts";
import {
  KEY_MIGRATIONS,
  KeyRows,
  type KeyRowsOptions,
  keyFiles,
  openSeed,
  platformKeys,
} from "./platform-keys.ts";
import { SettingsError } from "./settings.ts";

const log = createLogger({ level: "silent", name: "test" });
const masterOf = (byte: number) => encodeBase64Url(new Uint8Array(32).fill(byte));
const ROOT = { name: "root.key", danger: "it is a test" };
const SEALED = row({ name: text, sealed: text });
const postgres = await postgresForTests();
afterAll(() => postgres?.stop());

let folder: string;
let master: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "depute-keys-"));
  master = join(folder, "the-master");
  writeFileSync(master, masterOf(1), { mode: 0o600 });
});
afterEach(() => rmSync(folder, { recursive: true }));

const PLACES: [string, () => KeyRowsOptions["place"]][] = [
  ["SQLite", () => ({ file: join(folder, "platform.sqlite") })],
];
if (postgres !== undefined) {
  const { url } = postgres;
  let schema = "";
  let owner = "";
  const place = () => {
    if (owner !== folder) [owner, schema] = [folder, freeSchema()];
    return { postgres: url, schema };
  };
  PLACES.push(["Postgres", place]);
}

describe.each(PLACES)("keys as rows of %s", (dialect, place) => {
  const keysOf = (more: Partial<KeyRowsOptions> = {}) =>
    new KeyRows({
      ...{ place: place(), dataDir: folder, masterFile: master, replaced: [] },
      ...{ clock: systemClock, timers: systemTimers, log, ...more },
    });
  /** Another replica, which has the master key and an empty data folder. */
  const replica = () => {
    const dataDir = mkdtempSync(join(folder, "replica-"));
    return { dataDir, keys: keysOf({ dataDir }) };
  };
  const never = () => expect.fail("the key exists");

  it("are created once, and are the same for each replica", async () => {
    const [one, two] = [replica(), replica()];
    const created = await openSeed(one.keys, ROOT);
    expect(await openSeed(two.keys, ROOT)).toEqual(created);
    expect([...readdirSync(one.dataDir), ...readdirSync(two.dataDir)]).toEqual([]);
    expect(await openSeed(one.keys, { ...ROOT, name: "verifier.key" })).not.toEqual(created);
  });

  // Only Postgres stores can have two replicas: one process at a time may open a SQLite file.
  if (dialect === "Postgres") {
    it("are one key if two replicas create it at once", async () => {
      const createdSeeds = await Promise.all([replica(), replica()].map(({ keys }) => openSeed(keys, ROOT)));
      expect(createdSeeds[0]).toEqual(createdSeeds[1]);
    });
  }

  it("are sealed in the store", async () => {
    const key = await keysOf().open(ROOT, () => masterOf(9));
    const store = await openStore({ ...place(), migrations: KEY_MIGRATIONS, onError: never });
    const rows = await store.read((tx) => tx.all(SEALED, "SELECT name, sealed FROM platform_keys"));
    await store.close();
    expect(rows.map(({ name }) => name)).toEqual(["root"]);
    expect(Buffer.from(rows[0]?.sealed ?? "", "base64url").includes(key)).toBe(false);
  });

  it("are first taken from the files of the data folder", async () => {
    const before = await openSeed(keyFiles(folder), ROOT);
    expect(await openSeed(keysOf(), ROOT)).toEqual(before);
    expect(await openSeed(replica().keys, ROOT)).toEqual(before);
  });

  it("are not replaced by another file unless the operator allows it", async () => {
    const before = await keysOf().open(ROOT, () => masterOf(8));
    writeFileSync(join(folder, "root.key"), masterOf(7), { mode: 0o600 });
    await expect(keysOf().open(ROOT, never)).rejects.toThrow(/differs.*DEPUTE_REPLACE_KEYS=root/);
    expect(await replica().keys.open(ROOT, never)).toBe(before);
    expect(await keysOf({ replaced: ["root"] }).open(ROOT, never)).toBe(masterOf(7));
    expect(await replica().keys.open(ROOT, never)).toBe(masterOf(7));
  });

  it("cannot be opened with another master key", async () => {
    await keysOf().open(ROOT, () => masterOf(8));
    writeFileSync(master, masterOf(2), { mode: 0o600 });
    await expect(keysOf().open(ROOT, never)).rejects.toThrow(/another master key.*DEPUTE_MASTER_KEY_FILE/);
    writeFileSync(master, masterOf(1), { mode: 0o600 });
    expect(await keysOf().open(ROOT, never)).toBe(masterOf(8));
  });

  it("are not used for a key with a configured file", async () => {
    const configured = join(folder, "mounted");
    await expect(keysOf().open({ ...ROOT, configured }, never)).rejects.toThrow(SettingsError);
    writeFileSync(configured, masterOf(5), { mode: 0o600 });
    expect(await keysOf().open({ ...ROOT, configured }, never)).toBe(masterOf(5));
  });
});

it.each([
  ["files without Postgres", "", "a", false],
  ["files without a configured master key", "postgres://db/x", "", false],
  ["rows with both", "postgres://db/x", "a", true],
])("a process has %s", (_name, postgresUrl, masterKeyFile, areRows) => {
  const common = { dataDir: folder, postgresUrl, postgresSchemaPrefix: "p", masterKeyFile, replaceKeys: [] };
  const keys = platformKeys(common, { clock: systemClock, timers: systemTimers, log });
  expect(keys instanceof KeyRows).toBe(areRows);
});
