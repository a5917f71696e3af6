/**
 * `npm run bench`: runs every suite, each in a process of its own, prints one table, and writes bench/results/*.json.
 * `npm run bench -- SUITE [PART]`: runs the benchmarks of bench/SUITE whose name contains PART, and prints their results.
 * `--quick` measures a hundredth, to show that the benchmarks work; its values mean nothing.
 */
import { existsSync, globSync } from "node:fs";
import { basename, join } from "node:path";
import { parseArgs } from "node:util";

const { values, positionals } = parseArgs({
  options: { quick: { type: "boolean", default: false } },
  allowPositionals: true,
});
const [suite, part = ""] = positionals;
// amount.ts reads it when it is imported, in this process and in those of `runAll`.
if (values.quick) process.env.DEPUTE_BENCH_QUICK = "true";

const suites = globSync("*/*.bench.ts", { cwd: import.meta.dirname })
  .map((path) => basename(join(path, "..")))
  .filter((name, index, all) => all.indexOf(name) === index)
  .sort();

if (suite === undefined) {
  const { runAll } = await import("./run-all.ts");
  process.exitCode = await runAll(suites);
} else if (/^[a-z0-9-]+$/.test(suite) && existsSync(join(import.meta.dirname, suite))) {
  const { runSuite } = await import("./run-suite.ts");
  const results = await runSuite(suite, part);
  process.send?.(results);
} else {
  console.error(`usage: npm run bench -- [suite] [part of a name] [--quick]; suites: ${suites.join(", ")}`);
  process.exitCode = 2;
}
