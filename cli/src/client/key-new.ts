import { writeFileSync } from "node:fs";
import { CommandError } from "../exit-codes.ts";
import type { Invocation } from "../table/command.ts";
import { write } from "./output.ts";

/** `depute keys new FILE`. */
export async function newKey({ values }: Invocation): Promise<void> {
  const file = String(values.FILE);
  const { createKey, seedOf } = await import("@depute/client");
  const key = createKey();
  try {
    writeFileSync(file, `${seedOf(key)}\n`, { mode: 0o600, flag: "wx" });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
    throw new CommandError(`${file} exists already; choose another file`);
  }
  write(key.principal.id);
}
