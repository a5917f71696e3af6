import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { createKey, keyFromSeed, seedOf } from "@depute/client";

/**
 * Returns the key whose seed a file contains. If the file does not exist, the function creates the file,
 * readable only by the user.
 */
export function keyOf(file: string): ReturnType<typeof createKey> {
  if (!existsSync(file)) writeFileSync(file, `${seedOf(createKey())}\n`, { mode: 0o600, flag: "wx" });
  return keyFromSeed(readFileSync(file, "utf8").trim());
}
