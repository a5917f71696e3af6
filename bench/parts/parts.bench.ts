import { amount, isQuick } from "../amount.ts";
import type { Benchmark, Benchmarks } from "../bench.ts";
import { CALLS, PARTS } from "./parts.ts";
import { serve } from "./served.ts";

/**
 * Measures how much of the server's CPU time per gRPC call each of Depute's own implementations saves, compared with a
 * library. Servers with and without the implementation take turns, so that other load of the machine affects both. The
 * result is the median over the rounds.
 */

const WARM_UP_CALLS = amount(1500);
const CALLS_A_ROUND = amount(400);
const ROUNDS = amount(9);
/**
 * The minimum fraction of a call's CPU time that an implementation of Depute must save over the library. An
 * implementation that saves less should be deleted.
 */
const WORTH = 0.1;

/** A quick run shows that each replacement works, so it measures each file once. */
const measuredParts = Object.entries(PARTS).filter(
  ([, { file }], i, all) => !isQuick || all.findIndex(([, other]) => other.file === file) === i,
);

const benchmarks: Benchmarks = () =>
  measuredParts.map(([part, { call }]): Benchmark => {
    let measured: Promise<Costs> | undefined;
    const costs = () => {
      measured ??= measure(part);
      return measured;
    };
    const unit = "us of CPU a call";
    return {
      name: `${part}: ${CALLS[call]}`,
      figures: [
        { name: "with the part", unit, measure: async () => (await costs()).with },
        { name: "without it", unit, measure: async () => (await costs()).without },
        {
          name: "saved by the part",
          unit: "of the call",
          atLeast: WORTH,
          measure: async () => (await costs()).saved,
        },
        {
          name: "  middle half of the rounds apart",
          unit: "of the call",
          measure: async () => (await costs()).spread,
        },
      ],
    };
  });
export default benchmarks;

interface Costs {
  readonly with: number;
  readonly without: number;
  readonly saved: number;
  readonly spread: number;
}

async function measure(part: string): Promise<Costs> {
  const call = PARTS[part]?.call ?? "GetAgent";
  const servers = await Promise.all([serve(), serve(part)]);
  for (const server of servers) await server.cost(call, WARM_UP_CALLS);
  const rounds: { with: number; without: number; saved: number }[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    const keptCost = await servers[0].cost(call, CALLS_A_ROUND);
    const without = await servers[1].cost(call, CALLS_A_ROUND);
    rounds.push({ with: keptCost, without, saved: 1 - keptCost / without });
  }
  for (const server of servers) server.close();
  const at = (of: keyof (typeof rounds)[number], share: number) =>
    rounds.map((round) => round[of]).sort((a, b) => a - b)[Math.floor((ROUNDS - 1) * share)] ?? Number.NaN;
  return {
    with: at("with", 0.5),
    without: at("without", 0.5),
    saved: at("saved", 0.5),
    spread: at("saved", 0.75) - at("saved", 0.25),
  };
}
