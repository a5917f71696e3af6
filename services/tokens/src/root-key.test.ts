import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { encodeBase64Url } from "@depute/core";
import { keyFiles, SettingsError } from "@depute/service";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { assertRoots, openRootKey } from "./root-key.ts";
import { alice, engine, id } from "./testing/holders.ts";
import { silent } from "./testing/parts.ts";

let dataDir: string;
beforeEach(() => {
  dataDir = mkdtempSync(join(tmpdir(), "depute-root-"));
});
afterEach(() => rmSync(dataDir, { recursive: true }));

const open = (configured = "") => openRootKey(engine, { keys: keyFiles(dataDir), configured, log: silent });

describe("the platform's root key", () => {
  it("is created at the first start and stays the same", async () => {
    const platformKeys = await open();
    expect(readdirSync(dataDir)).toEqual(["root.key"]);
    expect((await open()).principal.id).toBe(platformKeys.principal.id);
  });

  it("comes from a configured file, which may be a mounted secret", async () => {
    const file = join(dataDir, "secret");
    writeFileSync(file, encodeBase64Url(alice.privateKey), { mode: 0o444 });
    expect((await open(file)).principal.id).toBe(id(alice));
    expect(readdirSync(dataDir)).toEqual(["secret"]);
  });

  it("is never created at a configured path", async () => {
    await expect(open(join(dataDir, "mistyped"))).rejects.toThrow(SettingsError);
    expect(readdirSync(dataDir)).toEqual([]);
  });
});

describe("trusted roots", () => {
  it("are Ed25519 keys", () => {
    expect(() => assertRoots(engine, [id(alice)])).not.toThrow();
  });

  it.each(["", "alice", `AQ${"A".repeat(41)}`, `${"A".repeat(43)}=`])("are not %j", (root) => {
    expect(() => assertRoots(engine, [id(alice), root])).toThrow("number 2");
  });
});
