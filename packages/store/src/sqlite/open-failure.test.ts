import {
  closeSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  rmSync,
  truncateSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { StoreFileError } from "../errors.ts";
import { openStore } from "../open.ts";
import { openFailure } from "./open-failure.ts";

const folder = mkdtempSync(join(tmpdir(), "depute-open-"));
afterAll(() => rmSync(folder, { recursive: true }));

const MIGRATIONS = [{ id: 1, name: "t", sql: "CREATE TABLE t (n INTEGER PRIMARY KEY, filler BLOB)" }];
const open = (file: string) => openStore({ file, migrations: MIGRATIONS, onError: () => {} });

describe("a file that cannot be a store is refused with its path and a remedy", () => {
  test.each<[string, (file: string) => void | Promise<void>, string]>([
    [
      "another file",
      (file) => writeFileSync(file, "a text of some length".repeat(500)),
      "it is damaged, or is not a database",
    ],
    ["a folder", (file) => mkdirSync(file), "it is not a file that this user can open"],
    [
      "a store whose first pages are overwritten",
      async (file) => {
        const store = await open(file);
        await store.write((tx) => tx.run("INSERT INTO t VALUES (1, ?)", [new Uint8Array(50_000)]));
        await store.close();
        const handle = openSync(file, "r+");
        writeSync(handle, new Uint8Array(8_000).fill(0x5a), 0, 8_000, 100);
        closeSync(handle);
      },
      "it is damaged, or is not a database",
    ],
    [
      "a store that was cut",
      async (file) => {
        await (await open(file)).close();
        truncateSync(file, 5_000);
      },
      "it is damaged, or is not a database",
    ],
  ])("%s", async (name, prepare, remedy) => {
    const file = join(folder, `${name}.sqlite`);
    await prepare(file);
    const refused = open(file);
    await expect(refused).rejects.toThrow(StoreFileError);
    await expect(refused).rejects.toThrow(`${file} cannot be opened (`);
    await expect(refused).rejects.toThrow(remedy);
    // The failed attempt has released the lock, so another attempt fails for the same reason.
    await expect(open(file)).rejects.toThrow(remedy);
  });
});

describe("the remedy", () => {
  const withCode = (codes: object) => Object.assign(new Error("why"), codes);
  test.each([
    [{ code: "EROFS" }, "it cannot be written"],
    [{ code: "EACCES" }, "it cannot be written"],
    [{ code: "ENOSPC" }, "the disk is full"],
    [{ errcode: 8 }, "it cannot be written"],
    [{ errcode: 1544 }, "it cannot be written"], // READONLY_DIRECTORY
    [{ errcode: 13 }, "the disk is full"],
    [{ errcode: 778 }, "the disk is full"], // IOERR_WRITE
    [{ errcode: 266 }, "the disk reports errors"], // IOERR_READ
    [{ errcode: 267 }, "it is damaged"], // CORRUPT_VTAB
  ])("of %j", (codes, remedy) => {
    expect(String(openFailure("/a.sqlite", withCode(codes)))).toContain(
      `/a.sqlite cannot be opened (why): ${remedy}`,
    );
  });

  test("is that of the cause, for an error of the store", () => {
    const error = new Error("the database does not answer", { cause: withCode({ errcode: 13 }) });
    expect(String(openFailure("/a.sqlite", error))).toContain("the disk is full");
  });

  test("is absent for other errors", () => {
    const error = new Error("other");
    expect(openFailure("/a.sqlite", error)).toBe(error);
  });
});
