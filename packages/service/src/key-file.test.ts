import { chmodSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { encodeBase64Url } from "@depute/core";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type KeyFile, openKeyFile, openSeedFile } from "./key-file.ts";
import { SettingsError } from "./settings.ts";

let dataDir: string;
beforeEach(() => {
  dataDir = mkdtempSync(join(tmpdir(), "depute-key-"));
});
afterEach(() => rmSync(dataDir, { recursive: true }));

const keyPath = () => join(dataDir, "a.key");
const open = (more: Partial<KeyFile> = {}) =>
  openSeedFile({ dataDir, name: "a.key", danger: "it is a test", ...more });

describe("a key file", () => {
  it("is created once, readable by its owner only, and stays the same", () => {
    const openedKey = open();
    expect(statSync(keyPath()).mode & 0o777).toBe(0o600);
    expect(readdirSync(dataDir)).toEqual(["a.key"]);
    expect(open()).toEqual(openedKey);
    expect(readFileSync(keyPath(), "utf8").trim()).toBe(encodeBase64Url(openedKey));
  });

  it("is created completely although an earlier process ended while it wrote the file", () => {
    writeFileSync(`${keyPath()}.${process.pid}`, "half a");
    expect(open()).toHaveLength(32);
    expect(readdirSync(dataDir)).toEqual(["a.key"]);
  });

  it("is refused if others can read it", () => {
    open();
    chmodSync(keyPath(), 0o640);
    expect(open).toThrow(/chmod 600/);
  });

  it("may be a mounted secret that others can read, if it is configured", () => {
    const configured = join(dataDir, "secret");
    writeFileSync(configured, encodeBase64Url(new Uint8Array(32).fill(7)), { mode: 0o444 });
    const warnings: string[] = [];
    expect(open({ configured, warn: (message) => warnings.push(message) })).toEqual(
      new Uint8Array(32).fill(7),
    );
    expect(warnings).toEqual([expect.stringContaining("it is a test")]);
    expect(() => open({ configured })).toThrow(SettingsError);
  });

  it("is never created at a configured path", () => {
    expect(() => open({ configured: join(dataDir, "mistyped") })).toThrow(SettingsError);
    expect(readdirSync(dataDir)).toEqual([]);
  });

  it.each(["", "short", "A".repeat(44), `${"A".repeat(42)}B`, `${"A".repeat(43)}=`, "*".repeat(43)])(
    "of 32 bytes is not %j",
    (text) => {
      writeFileSync(keyPath(), text, { mode: 0o600 });
      expect(open).toThrow(SettingsError);
      expect(readFileSync(keyPath(), "utf8")).toBe(text);
    },
  );

  it("contains what its creator returns", () => {
    const text = () => openKeyFile({ dataDir, name: "b.key", danger: "" }, () => "of its own form\n");
    expect([text(), text()]).toEqual(["of its own form", "of its own form"]);
  });
});
