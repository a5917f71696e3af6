/** A program to be killed: writes for ever, and says which writes were acknowledged, one id a line. */
import { writeSync } from "node:fs";
import { openStore } from "../open.ts";
import { CRASH_MIGRATIONS } from "./crash-migrations.ts";

const [file = ""] = process.argv.slice(2);
const WRITERS = 20;

const store = await openStore({
  file,
  migrations: CRASH_MIGRATIONS,
  onError: (error) => {
    throw error;
  },
});
let next = 1;
await Promise.all(
  Array.from({ length: WRITERS }, async () => {
    for (;;) {
      const id = next++;
      await store.write(async (tx) => {
        await tx.run("INSERT INTO entry (id, half) VALUES (?, 1)", [2 * id]);
        await tx.run("INSERT INTO entry (id, half) VALUES (?, 2)", [2 * id + 1]);
      });
      // Synchronous, so that nothing is said that was not yet true.
      writeSync(1, `${id}\n`);
    }
  }),
);
