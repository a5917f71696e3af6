import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { canonicalJson, systemClock } from "@depute/core";
import { leafHash, verifyInclusion } from "@depute/dct/transparency";
import { openStore } from "@depute/store";
import { migrations, TransparencyLog } from "@depute/verifier/testing";
import { amount } from "../amount.ts";
import type { Benchmarks } from "../bench.ts";
import { engine, issuer } from "./client.ts";
import { bytesOf, fillLog } from "./fill-log.ts";

const LEAVES = amount(1_000_000);

/** Measures proofs from a log of a million leaves in a SQLite file, and the time to append another leaf. */
const benchmarks: Benchmarks = async () => {
  const folder = mkdtempSync(join(tmpdir(), "depute-bench-"));
  const file = join(folder, "verifier.sqlite");
  const onError = (error: unknown) => console.error(error);
  await (await openStore({ file, migrations, onError })).close();
  const root = fillLog(file, LEAVES);
  const store = await openStore({ file, migrations, onError });
  const log = new TransparencyLog(engine, issuer, systemClock);
  let at = 0;
  const prove = async () => {
    at = (at + 618_033) % LEAVES;
    const proof = await store.read((tx) => log.inclusion(tx, at, LEAVES));
    return { at, proof };
  };
  for (let i = 0; i < 100; i++) {
    const { at: index, proof } = await prove();
    const leaf = leafHash(engine.sha256, bytesOf(index));
    if (!verifyInclusion(engine.sha256, { index, treeSize: LEAVES, leaf, root, proof })) {
      throw new Error("a proof does not hold");
    }
  }
  let size = 0;
  return [
    {
      name: `a log of ${LEAVES} leaves`,
      contenders: [
        { name: "inclusion proof", run: prove },
        {
          name: "consistency proof",
          run: () => {
            size = (size + 618_033) % LEAVES;
            return store.read((tx) => log.consistency(tx, size, LEAVES));
          },
        },
      ],
      figures: [
        {
          name: "inclusion proof, mean of 2,000",
          unit: "ms",
          atMost: 1,
          async measure() {
            const start = performance.now();
            for (let i = 0; i < 2000; i++) await prove();
            return (performance.now() - start) / 2000;
          },
        },
        {
          name: "append, 128 in one transaction, mean",
          unit: "ms",
          async measure() {
            const start = performance.now();
            await store.write(async (tx) => {
              for (let i = 0; i < 128; i++) {
                await log.append(tx, "attestation", canonicalJson({ i, start }));
              }
            });
            return (performance.now() - start) / 128;
          },
        },
      ],
      async close() {
        await store.close();
        rmSync(folder, { recursive: true });
      },
    },
  ];
};
export default benchmarks;
