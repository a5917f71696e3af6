import { type ChildProcess, fork } from "node:child_process";
import { join } from "node:path";
import type { MessageInitShape } from "@bufbuild/protobuf";
import { type Client, createClient } from "@connectrpc/connect";
import { AgentService } from "@depute/contracts/depute/registry/v1/agent_service_pb";
import {
  type DiscoverCapabilitiesRequestSchema,
  DiscoveryService,
} from "@depute/contracts/depute/registry/v1/discovery_service_pb";
import { createGrpcJsTransport } from "@depute/grpc-js";
import type { Benchmark, Figure } from "../bench.ts";
import { CATEGORIES, ORGANIZATIONS, TAGS } from "./agents.ts";

/**
 * Discovery and registration over gRPC, with the registry in a process of its own: first with 1,000 agents and then with
 * 100,000, each with 5 capabilities. Filling the large one takes minutes; DEPUTE_BENCH_AGENTS makes it smaller, and
 * DEPUTE_BENCH_DATA keeps it in a folder for a day's further runs.
 */

type Request = MessageInitShape<typeof DiscoverCapabilitiesRequestSchema>;

const SMALL = 1_000;
const LARGE = Number(process.env.DEPUTE_BENCH_AGENTS ?? 100_000);
const IN_FLIGHT = 4;
const CALLS = 4_000;
const WARM_UP = 500;
/** Free text weighs up to 1,000 capabilities a call. */
const TEXT_CALLS = 400;
const REGISTRATIONS = 10_000;
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

const WORDS_IN_CATEGORY = (i: number): Request => ({
  filter: { category: `cat-${i % CATEGORIES}`, query: "translate merge" },
});

interface Served {
  readonly discovery: Client<typeof DiscoveryService>;
  readonly agents: Client<typeof AgentService>;
  close(): void;
}

export default async function benchmarks(): Promise<Benchmark[]> {
  const started = performance.now();
  const [small, large] = [await serve(SMALL), await serve(LARGE)];
  console.log(
    `filled with ${SMALL} and ${LARGE} agents in ${Math.round((performance.now() - started) / 1000)} s`,
  );
  const close = () => {
    small.close();
    large.close();
  };
  return [
    ...Object.entries(FILTERS).map(([name, filter]) =>
      discovery(name, filter, small, large, { calls: CALLS, goals: true }),
    ),
    discovery("two words in a category, ranked", WORDS_IN_CATEGORY, small, large, {
      calls: TEXT_CALLS,
      goals: false,
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
  { calls, goals }: { calls: number; goals: boolean },
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
    // What the machine does besides shows here.
    { name: `p99, ${SMALL} agents`, unit: "ms", measure: async () => quantile((await times()).few, 0.99) },
    {
      name: `p99, ${LARGE} agents`,
      unit: "ms",
      measure: async () => quantile((await times()).many, 0.99),
      ...(goals ? { atMost: 10 } : {}),
    },
    {
      name: "median, growth",
      unit: "times",
      measure: async () => quantile((await times()).many, 0.5) / quantile((await times()).few, 0.5),
      ...(goals ? { atMost: 2 } : {}),
    },
  ];
  return { name: `discovery by ${name}`, figures };
}

/** Milliseconds of each of so many calls, four always on their way. */
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

/** Tells the agents of this run from those of one before, in a folder that was kept. */
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
            const agent = { id: `new-${run}-${i}`, organization: "new", tags: ["new"], leaseMs: 86_400_000n };
            await agents.registerAgent({ requestId: `new-${run}-${i}`, agent });
          }
        }),
      );
      return (REGISTRATIONS / (performance.now() - begun)) * 1000;
    },
  };
}

async function serve(count: number): Promise<Served> {
  const kept = process.env.DEPUTE_BENCH_DATA;
  const folder = kept === undefined ? [] : [join(kept, String(count))];
  const child = fork(join(import.meta.dirname, "server.ts"), [String(count), ...folder]);
  const { address } = await told<{ address: string }>(child);
  const transport = createGrpcJsTransport(address);
  return {
    discovery: createClient(DiscoveryService, transport),
    agents: createClient(AgentService, transport),
    close() {
      transport.close();
      child.disconnect();
    },
  };
}

function told<T>(child: ChildProcess): Promise<T> {
  return new Promise((resolve, reject) => {
    child.once("message", (message) => resolve(message as T));
    child.once("exit", (code) => reject(new Error(`the server ended with code ${code}`)));
  });
}
