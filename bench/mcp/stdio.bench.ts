import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock, systemTimers } from "@depute/core";
import { createProof } from "@depute/dct";
import { nativeEngine as engine } from "@depute/dct/native";
import {
  McpProxy,
  once,
  PlatformAuthoriser,
  platformSchemaCheck,
  readConfig,
  Upstream,
  type UpstreamConfig,
} from "@depute/mcp";
import { fromConnectError, ownHeaders, SealedSecrets } from "@depute/service";
import { type Grant, grant } from "../../tests/mcp/holder.ts";
import { type McpPlatform, startPlatform } from "../../tests/mcp/platform.ts";
import { amount } from "../amount.ts";
import type { Benchmark, Figure } from "../bench.ts";

/**
 * Measures what the proxy adds to a call, as a multiple of the p50 of a bare call of the same server over stdio. Bare
 * and proxied calls take turns in one process, without HTTP, so the machine's other load affects them equally. The
 * client's proof is made before the measured time.
 */

const ROUNDS = amount(7);
const CALLS = amount(150);
const WARM = amount(300);
/** Turns of the event loop between two calls. */
const TURNS = 8;

const SERVER = new URL("echo-server.ts", import.meta.url).pathname;
const RULE = { namespace: "compute", action: "execute", resource: "echo" };

interface Way {
  readonly name: string;
  readonly atMost?: number;
  readonly config: object;
  readonly cost?: number;
  readonly announces?: boolean;
}

const WAYS: readonly Way[] = [
  {
    name: "added, token verified, a server that announces changes",
    atMost: 0.5,
    config: { trustPromises: true },
    announces: true,
  },
  { name: "added, token verified, within the ttl", atMost: 0.5, config: { definitionTtlMs: 600_000 } },
  {
    name: "added, and its budget reserved, within the ttl",
    atMost: 1,
    config: { definitionTtlMs: 600_000 },
    cost: 1,
  },
  { name: "added, token verified, a silent server: one more list", config: {} },
];

type Call = (n: number) => Promise<() => Promise<unknown>>;

function upstreamFor(config: object, cost: number, announces: boolean) {
  const map = { tools: { echo: { ...RULE, cost } } };
  const stdio = { command: process.execPath, args: [SERVER, ...(announces ? ["announces"] : [])] };
  const { upstreams } = readConfig(
    { upstreams: { echo: { stdio, map, revision: "modern", ...config } } },
    new Map(),
  );
  const read = upstreams.get("echo") as UpstreamConfig & { address: NonNullable<UpstreamConfig["address"]> };
  const own = { config: read, address: read.address, clock: systemClock, timers: systemTimers };
  return { config: read, upstream: new Upstream(own) };
}

/** A call of the server itself, by the client that the proxy uses, too. */
function bareCall() {
  const { upstream } = upstreamFor({}, 0, true);
  const call: Call = async (n) => () => upstream.request("tools/call", { name: "echo", arguments: { n } });
  return { call, close: () => upstream.close() };
}

function proxiedCall(
  { config: extra, cost = 0, announces = false }: Way,
  platform: McpPlatform,
  holder: Grant,
) {
  const { config, upstream } = upstreamFor(extra, cost, announces);
  const callOptions = () => ({ headers: ownHeaders("") });
  const proxy = new McpProxy({
    config,
    upstream,
    seal: SealedSecrets.ofProcess(),
    authoriser: new PlatformAuthoriser({
      server: "echo",
      tokens: platform.connect("tokens"),
      registry: platform.connect("registry"),
      clock: systemClock,
      callOptions,
      refusalIn: fromConnectError,
      longestCallMs: config.timeoutMs,
    }),
    schemaCheck: platformSchemaCheck({
      verifier: platform.connect("verifier"),
      callOptions,
      refusalIn: fromConnectError,
    }),
    clock: systemClock,
    timers: systemTimers,
    audience: () => "mcp:echo",
    onFault: (subject, thrown) => {
      throw new Error(subject, { cause: thrown });
    },
  });
  const { token, keypair } = holder;
  const call: Call = async (n) => {
    const args = { n };
    const claims = { htm: "MCP", htu: "mcp:echo", token, arguments: args };
    const jwt = createProof(engine, keypair, claims);
    const presentation = once(token, "", { jwt, method: "MCP", target: "mcp:echo" });
    return () =>
      proxy.handle({ method: "tools/call", params: { name: "echo", arguments: args }, presentation });
  };
  return { call, close: () => proxy.close() };
}

const medianOf = (values: readonly number[]) =>
  values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;

/** Returns, for each way, what it adds to a bare call in each round, as a multiple of the bare call. */
async function measure(bare: Call, ways: readonly Call[]): Promise<{ bareMs: number; added: number[][] }> {
  const all = [bare, ...ways];
  const added: number[][] = ways.map(() => []);
  const bareTimes: number[] = [];
  let n = 0;
  for (let round = -1; round < ROUNDS; round++) {
    const times = all.map((): number[] => []);
    for (let i = 0; i < (round < 0 ? WARM : CALLS); i++) {
      for (const [at, call] of all.entries()) {
        const run = await call(n++);
        // Waits until the work that follows an earlier response, such as a charge, is done. That work must not add to
        // this call.
        for (let turn = 0; turn < TURNS; turn++) await systemTimers.nextTurn();
        const begin = performance.now();
        await run();
        times[at]?.push(performance.now() - begin);
      }
    }
    if (round < 0) continue;
    const [base = Number.NaN, ...others] = times.map(medianOf);
    bareTimes.push(base);
    for (const [at, p50] of others.entries()) added[at]?.push((p50 - base) / base);
  }
  return { bareMs: medianOf(bareTimes), added };
}

export default async function benchmarks(): Promise<Benchmark[]> {
  const folder = existsSync("/dev/shm") ? "/dev/shm" : tmpdir();
  const dataDir = mkdtempSync(join(folder, "depute-bench-"));
  const platform = await startPlatform({}, ["--data-dir", dataDir]);
  const holder = await grant(platform, [["compute", "execute", "echo"]], 1_000_000_000);
  const bare = bareCall();
  const proxied = WAYS.map((way) => proxiedCall(way, platform, holder));
  let measured: ReturnType<typeof measure> | undefined;
  const once = () => {
    measured ??= measure(
      bare.call,
      proxied.map(({ call }) => call),
    );
    return measured;
  };
  const figures = WAYS.flatMap(({ name, atMost }, at): Figure[] => [
    {
      name,
      unit: "of a bare call",
      ...(atMost !== undefined && { atMost }),
      measure: async () => medianOf((await once()).added[at] ?? []),
    },
    {
      name: "  its spread over the rounds",
      unit: "of a bare call",
      measure: async () => {
        const rounds = (await once()).added[at] ?? [];
        return Math.max(...rounds) - Math.min(...rounds);
      },
    },
  ]);
  return [
    {
      name: "what the proxy adds to a call over stdio, p50, data in memory",
      figures: [
        { name: "a bare call over stdio", unit: "ms", measure: async () => (await once()).bareMs },
        ...figures,
      ],
      close: async () => {
        for (const { close } of [bare, ...proxied]) await close();
        await platform.stop();
        rmSync(dataDir, { recursive: true, force: true });
      },
    },
  ];
}
