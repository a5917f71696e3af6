import { cpSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { startPlatform } from "../gateway/platform.ts";

test("a SQLite store that was copied before a rotation of the root does not start", async () => {
  const folder = mkdtempSync(join(tmpdir(), "depute-older-root-"));
  const [dataDir, copy] = [join(folder, "data"), join(folder, "copy")];
  const storeFiles = (of: string) => readdirSync(of).filter((name) => name.startsWith("tokens.sqlite"));
  try {
    await (await startPlatform([], { dataDir })).stop();
    cpSync(dataDir, copy, { recursive: true });
    const platform = await startPlatform([], { dataDir });
    const rotation = { requestId: "rotate", retireNow: true };
    const answer = await platform.post("/depute.tokens.v1.RootKeyService/RotateRootKey", rotation);
    expect(answer.status).toBe(200);
    await platform.stop();
    for (const name of storeFiles(dataDir)) rmSync(join(dataDir, name));
    for (const name of storeFiles(copy)) cpSync(join(copy, name), join(dataDir, name));
    await expect(startPlatform([], { dataDir })).rejects.toThrow("a retired root would count again");
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});
