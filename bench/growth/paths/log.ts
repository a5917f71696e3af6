import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { canonicalJson, systemClock } from "@depute/core";
import { openStore, type Store } from "@depute/store";
import { migrations, TransparencyLog } from "@depute/verifier/testing";
import { engine, issuer } from "../../verifier/client.ts";
import { fillLog } from "../../verifier/fill-log.ts";
import { type Path, powersTo, usEach } from "../path.ts";

const LARGEST = 1_000_000;
const CALLS = 400;
const IN_FLIGHT = 32;
const APPEND = "append an entry";
const INCLUSION = "prove inclusion";
const CONSISTENCY = "prove consistency";
/** The distance between two measured indexes, modulo the size. It spreads the indexes over the whole log. */
const STEP = 618_033;

/** Entries of the transparency log. Each size has a file of its own. Appends that are in flight share a flush. */
export const log: Path = {
  name: "entries of the transparency log",
  unit: "us",
  sizes: powersTo(LARGEST),
  lines: [APPEND, INCLUSION, CONSISTENCY],
  flat: [APPEND, INCLUSION, CONSISTENCY].map((line) => ({ line, from: 1_000, to: LARGEST, atMost: 3 })),
  async open() {
    const folder = mkdtempSync(join(tmpdir(), "depute-bench-"));
    const tree = new TransparencyLog(engine, issuer, systemClock);
    const onError = (error: unknown) => console.error(error);
    let store: Store | undefined;
    let size = 0;
    let appended = 0;
    const opened = () => {
      if (store === undefined) throw new Error("no store");
      return store;
    };
    const lines: Record<string, (i: number) => Promise<unknown>> = {
      [APPEND]: () => {
        const document = canonicalJson({ size, number: appended++ });
        return opened().write((tx) => tree.append(tx, "attestation", document));
      },
      [INCLUSION]: (i) => opened().read((tx) => tree.inclusion(tx, (i * STEP) % size, size)),
      [CONSISTENCY]: (i) => opened().read((tx) => tree.consistency(tx, ((i * STEP) % (size - 1)) + 1, size)),
    };
    return {
      async grow(to) {
        await store?.close();
        const file = join(folder, `${to}.sqlite`);
        await (await openStore({ file, migrations, onError })).close();
        fillLog(file, to);
        store = await openStore({ file, migrations, onError });
        size = to;
        for (const call of Object.values(lines)) await usEach(CALLS, IN_FLIGHT, call);
      },
      measure: (line) => usEach(CALLS, IN_FLIGHT, lines[line] as (i: number) => Promise<unknown>),
      async close() {
        await store?.close();
        rmSync(folder, { recursive: true, force: true });
      },
    };
  },
};
