import { amount } from "./amount.ts";
import { type Benchmark, type Contender, ROUND_MS, ROUNDS } from "./bench.ts";

/** Milliseconds that the compiler needs to optimize hot code. */
const WARM_UP_MS = amount(200);

/** Microseconds per call: the median of the rounds, and the interquartile range of the rounds. */
export interface Measured {
  readonly contender: Contender;
  readonly median: number;
  readonly spread: number;
}

/**
 * Measures the contenders of a benchmark in turns, one round each, so that other load of the machine affects them
 * equally.
 */
export async function measure({ contenders = [] }: Benchmark): Promise<Measured[]> {
  const calls: number[] = [];
  for (const contender of contenders) calls.push(await calibrate(contender));
  const rounds = contenders.map((): number[] => []);
  for (let round = 0; round < ROUNDS; round++) {
    for (const [i, contender] of contenders.entries()) {
      rounds[i]?.push(await time(contender, calls[i] ?? 1));
    }
  }
  return contenders.map((contender, i) => {
    const sorted = (rounds[i] ?? []).sort((a, b) => a - b);
    const at = (part: number) => sorted[Math.floor((sorted.length - 1) * part)] ?? Number.NaN;
    return { contender, median: at(0.5), spread: at(0.75) - at(0.25) };
  });
}

/** Returns how many calls of the contender fit into one round when its code is warm. */
async function calibrate({ run }: Contender): Promise<number> {
  let most = 1;
  // Counts the calls in three rounds and uses the highest count, so that one disturbed round has no effect.
  for (const ms of [WARM_UP_MS, ROUND_MS, ROUND_MS, ROUND_MS]) {
    let calls = 0;
    for (const start = performance.now(); performance.now() - start < ms; calls++) await run();
    if (ms === ROUND_MS) most = Math.max(most, calls);
  }
  return most;
}

/**
 * Returns the microseconds per call. A synchronous contender is measured in CPU time of its thread, which the
 * system counts in steps of up to 4 ms. A contender that returns promises is measured in elapsed time, because
 * part of its work runs in other processes.
 */
async function time({ run }: Contender, calls: number): Promise<number> {
  const thread = process.threadCpuUsage();
  const start = process.hrtime.bigint();
  let waits = false;
  for (let i = 0; i < calls; i++) {
    const result = run();
    if (result instanceof Promise) {
      waits = true;
      await result;
    }
  }
  if (waits) return Number(process.hrtime.bigint() - start) / 1000 / calls;
  const { user, system } = process.threadCpuUsage(thread);
  return (user + system) / calls;
}
