import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { createKey, keyFromSeed, seedOf } from "@depute/client";

/** The key of a file with its seed. The file is created, for its owner alone, if it does not exist. */
export function keyOf(file: string): ReturnType<typeof createKey> {
  if (!existsSync(file)) writeFileSync(file, `${seedOf(createKey())}\n`, { mode: 0o600, flag: "wx" });
  return keyFromSeed(readFileSync(file, "utf8").trim());
}
