import { type Benchmark, type Contender, ROUND_MS, ROUNDS } from "./bench.ts";

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
async function calibrate(contender: Contender): Promise<number> {
  let calls = 1;
  for (;;) {
    const ms = ((await time(contender, calls)) * calls) / 1000;
    if (ms >= ROUND_MS / 2) return Math.max(1, Math.round((calls * ROUND_MS) / ms));
    calls *= 2;
  }
}

async function time({ run }: Contender, calls: number): Promise<number> {
  const start = process.hrtime.bigint();
  for (let i = 0; i < calls; i++) {
    const result = run();
    if (result instanceof Promise) await result;
  }
  return Number(process.hrtime.bigint() - start) / 1000 / calls;
}
