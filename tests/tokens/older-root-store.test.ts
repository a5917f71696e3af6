import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { newRequest } from "../../services/tokens/src/testing/holders.ts";
import { startPlatform } from "../../services/tokens/src/testing/platform.ts";

test("a SQLite store that was copied before a rotation of the root does not start", async () => {
  const platform = await startPlatform();
  try {
    const database = join(platform.dataDir, "tokens.sqlite");
    const copy = await platform.whileDown(() => readFileSync(database));
    await platform.rootKeys.rotateRootKey({ requestId: newRequest(), retireNow: true });
    const restored = platform.whileDown(() => {
      for (const end of ["-wal", "-shm"]) rmSync(database + end, { force: true });
      writeFileSync(database, copy);
    });
    await expect(restored).rejects.toThrow("a retired root would count again");
  } finally {
    await platform.stop();
  }
});
