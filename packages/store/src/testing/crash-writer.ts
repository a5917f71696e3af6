/**
 * A program that a test kills. Until the test does so, the program writes rows, and prints the id of each acknowledged
 * write on a separate line.
 */
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
      // The output is synchronous, so that ids are printed in the order of the acknowledgements.
      writeSync(1, `${id}\n`);
    }
  }),
);
