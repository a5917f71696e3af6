import type { MessageInitShape } from "@bufbuild/protobuf";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import type { DiscoverCapabilitiesRequestSchema } from "@depute/contracts/depute/registry/v1/discovery_service_pb";
import { amount } from "../amount.ts";
import type { Benchmark, Figure } from "../bench.ts";
import { CATEGORIES, ORGANIZATIONS, TAGS } from "./agents.ts";
import { type Served, serve } from "./served.ts";

/**
 * Measures discovery and registration over gRPC, with the registry in a separate process. It runs with 1,000 and with
 * 100,000 agents, each with 5 capabilities. Filling the large registry takes minutes; DEPUTE_BENCH_AGENTS makes it
 * smaller. DEPUTE_BENCH_DATA keeps it in a folder for further runs within a day. With DEPUTE_POSTGRES_URL it runs on
 * that database.
 */

type Request = MessageInitShape<typeof DiscoverCapabilitiesRequestSchema>;

const SMALL = amount(1_000, 100);
const LARGE = Number(process.env.DEPUTE_BENCH_AGENTS ?? amount(100_000, 200));
const IN_FLIGHT = 4;
const CALLS = amount(4_000);
const WARM_UP = amount(500);
/** Number of calls with free text. The number is small, because each call scores up to 1,000 capabilities. */
const TEXT_CALLS = amount(400);
const REGISTRATIONS = amount(10_000);
const REGISTRATIONS_IN_FLIGHT = 64;
const PAGE = 20;

const FILTERS: Record<string, (i: number) => Request> = {
  category: (i) => ({ filter: { category: `cat-${i % CATEGORIES}` } }),
  tag: (i) => ({ tags: [`tag-${i % TAGS}`] }),
  "organization and tag": (i) => ({ organization: `org-${i % ORGANIZATIONS}`, tags: [`tag-${i % TAGS}`] }),
  "category and tag": (i) => ({
    filter: { category: `cat-${i % CATEGORIES}` },
    tags: [`tag-${(i * 3) % TAGS}`],
  }),
};

/**
 * Searches that find almost nothing in the small registry. These searches have no target time: a time for an
 * almost empty result cannot be compared with the time for many agents.
 */
const SPARSE: Record<string, (i: number) => Request> = {
  "two tags": (i) => ({ tags: [`tag-${i % TAGS}`, `tag-${(i * 7 + 1) % TAGS}`] }),
  "two tags, category and organization": (i) => ({
    organization: `org-${i % ORGANIZATIONS}`,
    filter: { category: `cat-${i % CATEGORIES}` },
    tags: [`tag-${i % TAGS}`, `tag-${(i * 7 + 1) % TAGS}`],
  }),
};

const WORDS = (): Request => ({ filter: { query: "translate merge" } });
const WORDS_IN_CATEGORY = (i: number): Request => ({
  filter: { category: `cat-${i % CATEGORIES}`, query: "translate merge" },
});

export default async function benchmarks(): Promise<Benchmark[]> {
  const started = performance.now();
  const [small, large] = [await serve(SMALL), await serve(LARGE)];
  console.log(
    `filled with ${SMALL} and ${LARGE} agents in ${Math.round((performance.now() - started) / 1000)} s`,
  );
  const close = async () => {
    await Promise.all([small.close(), large.close()]);
  };
  return [
    ...Object.entries(FILTERS).map(([name, filter]) =>
      discovery(name, filter, small, large, { calls: CALLS, goals: true }),
    ),
    ...Object.entries(SPARSE).map(([name, filter]) =>
      discovery(name, filter, small, large, { calls: CALLS, goals: false }),
    ),
    discovery("two words, ranked", WORDS, small, large, { calls: TEXT_CALLS, goals: "growth" }),
    discovery("two words in a category, ranked", WORDS_IN_CATEGORY, small, large, {
      calls: TEXT_CALLS,
      goals: "growth",
    }),
    {
      name: "registration",
      figures: [registrations("with few agents", small), registrations("with many", large)],
      close,
    },
  ];
}

function discovery(
  name: string,
  filter: (i: number) => Request,
  small: Served,
  large: Served,
  { calls, goals }: { calls: number; goals: boolean | "growth" },
): Benchmark {
  let taken: Promise<{ few: number[]; many: number[] }> | undefined;
  const times = () => {
    taken ??= (async () => {
      const warmUp = Math.min(WARM_UP, calls);
      await timed(small, filter, warmUp);
      await timed(large, filter, warmUp);
      return { few: await timed(small, filter, calls), many: await timed(large, filter, calls) };
    })();
    return taken;
  };
  const figures: Figure[] = [
    { name: `median, ${SMALL} agents`, unit: "ms", measure: async () => quantile((await times()).few, 0.5) },
    { name: `median, ${LARGE} agents`, unit: "ms", measure: async () => quantile((await times()).many, 0.5) },
    // No goal: this percentile only shows how much other load the machine had.
    { name: `p99, ${SMALL} agents`, unit: "ms", measure: async () => quantile((await times()).few, 0.99) },
    {
      name: `p99, ${LARGE} agents`,
      unit: "ms",
      measure: async () => quantile((await times()).many, 0.99),
      ...(goals === true ? { atMost: 10 } : {}),
    },
    {
      name: "median, growth",
      unit: "times",
      measure: async () => quantile((await times()).many, 0.5) / quantile((await times()).few, 0.5),
      ...(goals === false ? {} : { atMost: 2 }),
    },
  ];
  return { name: `discovery by ${name}`, figures };
}

/** Returns the milliseconds of each of a number of calls, with four calls always in flight. */
async function timed(
  { discovery }: Served,
  filter: (i: number) => Request,
  calls: number,
): Promise<number[]> {
  const times: number[] = [];
  const numbers = Array.from({ length: calls }, (_, i) => i).values();
  await Promise.all(
    Array.from({ length: IN_FLIGHT }, async () => {
      for (const i of numbers) {
        const begun = performance.now();
        await discovery.discoverCapabilities({ pageSize: PAGE, ...filter(i) });
        times.push(performance.now() - begun);
      }
    }),
  );
  return times.sort((a, b) => a - b);
}

function quantile(sorted: readonly number[], share: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}

/** Distinguishes the agents of this run from those of an earlier run in the same folder. */
const run = Date.now();

function registrations(name: string, { agents }: Served): Figure {
  return {
    name: `registrations, ${name}`,
    unit: "1/s",
    atLeast: 2_000,
    async measure() {
      const numbers = Array.from({ length: REGISTRATIONS }, (_, i) => i).values();
      const begun = performance.now();
      await Promise.all(
        Array.from({ length: REGISTRATIONS_IN_FLIGHT }, async () => {
          for (const i of numbers) {
            const agent = {
              id: `new-${run}-${i}`,
              organization: "new",
              tags: ["new"],
              leaseDuration: durationFromMs(86_400_000),
            };
            await agents.registerAgent({ requestId: `new-${run}-${i}`, agent });
          }
        }),
      );
      return (REGISTRATIONS / (performance.now() - begun)) * 1000;
    },
  };
}
