import type { Benchmark } from "../bench.ts";
import { benchmarkOf, type Path } from "./path.ts";
import { agents } from "./paths/agents.ts";
import { attestations } from "./paths/attestations.ts";
import { log } from "./paths/log.ts";
import { revocations } from "./paths/revocations.ts";
import { tasksOpen, tasksStored } from "./paths/tasks.ts";
import { transcript } from "./paths/transcript.ts";
import { watchers } from "./paths/watchers.ts";

/**
 * Measures each of the main costs while something grows. With `--write-docs`, the results become plots. A full run takes
 * a quarter of an hour on an idle machine; DEPUTE_BENCH_LARGEST=10000 ends each path at that size.
 */
export const PATHS: readonly Path[] = [
  tasksStored,
  tasksOpen,
  agents,
  revocations,
  watchers,
  attestations,
  transcript,
  log,
];

export default function benchmarks(): Benchmark[] {
  return PATHS.map(benchmarkOf);
}
