import { amount, turns } from "../amount.ts";
import type { Benchmark, Figure } from "../bench.ts";
import { middleOf } from "../turns.ts";
import { assertOk, type Call, type Kind, load, SECRET, type Served, serve } from "./load.ts";

/**
 * Measures how many empty unary calls a server answers per second of its CPU time. Depute's servers pass every
 * interceptor of a service, including validation. The reference server, of @grpc/grpc-js, checks nothing. All servers
 * have the same codec, the same load and the same flags of Node.js. connect-node alone is a second reference, and
 * node:http2 with the codec alone is the limit.
 */

const FRAME = new Uint8Array(5);
/** A request with one empty text. It is needed because h2load sends no body of zero bytes. */
const EMPTY_FIELD = Uint8Array.of(0x0a, 0);
const KINDS: readonly Kind[] = ["grpc-js", "http2", "connect-node", "adapter", "fast"];
/** The number of warm-up calls. It is not a time, because a busy machine answers few calls in a second. */
const WARM_UP = amount(30_000, 300);
const ROUND_S = 1;
const ROUNDS = turns(9);

const NAMES: Record<Kind, string> = {
  "grpc-js": "@grpc/grpc-js",
  http2: "node:http2 with the codec",
  "connect-node": "connect-node",
  adapter: "Depute, Connect's adapter",
  fast: "Depute, fast path",
  known: "Depute, fast path, caller known by credential",
};

const grpc = ["content-type: application/grpc", "te: trailers"];

export default (): Benchmark[] => [
  benchmark("an empty unary call, gRPC", { headers: grpc, body: FRAME }, KINDS, 1.3),
  benchmark(
    "an empty unary call, gRPC, with the headers of a grpc-js client that names a time limit",
    {
      headers: [
        ...grpc,
        "user-agent: grpc-node-js/1.14.7",
        "grpc-accept-encoding: identity,deflate,gzip",
        "grpc-timeout: 9999m",
      ],
      body: FRAME,
    },
    KINDS,
    1.3,
  ),
  benchmark(
    "an empty unary call, gRPC, with a credential",
    { headers: [...grpc, `authorization: Bearer ${SECRET}`], body: FRAME },
    ["grpc-js", "http2", "connect-node", "known"],
    1,
  ),
  benchmark(
    "an empty unary call, Connect in binary",
    { headers: ["content-type: application/proto", "connect-protocol-version: 1"], body: EMPTY_FIELD },
    ["connect-node", "adapter", "fast"],
  ),
  benchmark(
    "an empty unary call, Connect in JSON",
    { headers: ["content-type: application/json"], body: Buffer.from("{}") },
    ["connect-node", "adapter", "fast"],
  ),
];

/** Compares the servers with the first one. `goal` is the required ratio of the fast path. */
function benchmark(name: string, call: Call, kinds: readonly Kind[], goal?: number): Benchmark {
  let rates: Promise<Map<Kind, number[]>> | undefined;
  const measured = () => {
    rates ??= measure(call, kinds);
    return rates;
  };
  const [first = "adapter"] = kinds;
  const figures: Figure[] = kinds.map((kind) => ({
    name: NAMES[kind],
    unit: "calls a second of CPU time",
    measure: async () => middleOf((await measured()).get(kind) ?? []),
  }));
  for (const kind of kinds.slice(1)) {
    figures.push({
      name: `${NAMES[kind]}: times ${NAMES[first]}`,
      unit: "times",
      measure: async () => {
        const all = await measured();
        const base = all.get(first) ?? [];
        return middleOf((all.get(kind) ?? []).map((rate, round) => rate / (base[round] ?? Number.NaN)));
      },
      ...(goal !== undefined && (kind === "fast" || kind === "known") ? { atLeast: goal } : {}),
    });
  }
  return { name, figures };
}

/** Measures all servers. They take turns, so that other load of the machine affects them equally. */
async function measure(call: Call, kinds: readonly Kind[]): Promise<Map<Kind, number[]>> {
  const servers = await Promise.all(kinds.map(serve));
  const rates = new Map<Kind, number[]>(kinds.map((kind) => [kind, []]));
  try {
    for (const { port } of servers) {
      await assertOk(port, call);
      await load(port, call, { seconds: 0, calls: WARM_UP });
    }
    for (let round = 0; round < ROUNDS; round++) {
      for (const server of servers) rates.get(server.kind)?.push(await rate(server, call));
    }
  } finally {
    for (const server of servers) server.close();
  }
  return rates;
}

async function rate(server: Served, call: Call): Promise<number> {
  const before = await server.cpu();
  const calls = await load(server.port, call, { seconds: ROUND_S });
  return (calls / ((await server.cpu()) - before)) * 1e6;
}
