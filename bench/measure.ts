import { type Benchmark, type Contender, ROUND_MS, ROUNDS } from "./bench.ts";

/** Time for the compiler to see what is hot, in milliseconds. */
const WARM_UP_MS = 200;

/** Microseconds a call: the median of the rounds, and how far the middle half of them lies apart. */
export interface Measured {
  readonly contender: Contender;
  readonly median: number;
  readonly spread: number;
}

/**
 * Measures the contenders of a benchmark in turns, a round of each after a round of the one before, so that what else
 * the machine does meets them all alike.
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

/** How many calls fill a round, once the code is warm. */
async function calibrate({ run }: Contender): Promise<number> {
  let most = 1;
  // Several times, so that one in which the machine did something else does not count.
  for (const ms of [WARM_UP_MS, ROUND_MS, ROUND_MS, ROUND_MS]) {
    let calls = 0;
    for (const start = performance.now(); performance.now() - start < ms; calls++) await run();
    if (ms === ROUND_MS) most = Math.max(most, calls);
  }
  return most;
}

/**
 * Microseconds a call. Of a contender that never waits, the time of its thread: what else runs on the machine does not
 * count (the system counts it in steps of up to 4 ms). Of one that returns promises, the time that passes, since others work for it.
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
