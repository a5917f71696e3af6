/**
 * `npm run bench`: runs every suite, each in a process of its own, prints one table, and writes bench/results/*.json.
 * `npm run bench -- SUITE [PART]`: runs the benchmarks of bench/SUITE whose name contains PART, and prints their results.
 * `--quick` measures a hundredth, to show that the benchmarks work; its values mean nothing.
 * `--write-docs` writes the results into docs/performance.md and docs/performance/. Suites that do not run keep theirs.
 * With `--only-page` no suite runs: the page and its plots are written again from docs/performance/figures.json.
 */
import { existsSync, globSync } from "node:fs";
import { basename, join } from "node:path";
import { parseArgs } from "node:util";
import type { Result } from "./results.ts";

const { values, positionals } = parseArgs({
  options: {
    quick: { type: "boolean", default: false },
    "write-docs": { type: "boolean", default: false },
    "only-page": { type: "boolean", default: false },
  },
  allowPositionals: true,
});
const [suite, part = ""] = positionals;
// amount.ts reads this variable when it is imported, in this process and in the processes of `runAll`.
if (values.quick) process.env.DEPUTE_BENCH_QUICK = "true";

const suites = globSync("*/*.bench.ts", { cwd: import.meta.dirname })
  .map((path) => basename(join(path, "..")))
  .filter((name, index, all) => all.indexOf(name) === index)
  .sort();

/** The imports follow the setting of DEPUTE_BENCH_QUICK, because they import amount.ts. */
const { writeDocs } = await import("./docs/write.ts");
const { circumstances } = await import("./docs/figures.ts");
const when = circumstances();
const toDocs = (results: readonly Result[]) => {
  if (values["write-docs"] && !values.quick) writeDocs(results, when);
};

if (values["only-page"]) {
  writeDocs([], when);
} else if (suite === undefined) {
  const { runAll } = await import("./run-all.ts");
  process.exitCode = await runAll(suites, toDocs);
} else if (/^[a-z0-9-]+$/.test(suite) && existsSync(join(import.meta.dirname, suite))) {
  const { runSuite } = await import("./run-suite.ts");
  const results = await runSuite(suite, part);
  toDocs(results);
  process.send?.(results);
} else {
  console.error(
    `usage: npm run bench -- [suite] [part of a name] [--quick] [--write-docs]; suites: ${suites.join(", ")}`,
  );
  process.exitCode = 2;
}
