import { randomInt } from "node:crypto";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createClient } from "@connectrpc/connect";
import { ProofSessions } from "@depute/client";
import { HolderSessionService } from "@depute/contracts/depute/tokens/v1/holder_session_service_pb";
import { systemClock, systemTimers } from "@depute/core";
import { createProof } from "@depute/dct";
import { nativeEngine as engine } from "@depute/dct/native";
import {
  heldToken,
  McpProxy,
  once,
  PlatformAuthoriser,
  platformSchemaCheck,
  readConfig,
  Upstream,
  type UpstreamConfig,
} from "@depute/mcp";
import { fromConnectError, ownHeaders, SealedSecrets } from "@depute/service";
import { Client } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { type Grant, grant } from "../../tests/mcp/holder.ts";
import { type McpPlatform, startPlatform } from "../../tests/mcp/platform.ts";
import { amount } from "../amount.ts";
import type { Benchmark, Figure } from "../bench.ts";

/**
 * Measures what the proxy adds to a call, as a multiple of the p50 of a bare call of the same server over stdio by the
 * client of the MCP SDK. Bare and proxied calls take turns in one process, without HTTP, so the machine's other load
 * affects them equally. The client's proof is made before the measured time. Where the proxy has the key, it makes the
 * proof, which counts.
 */

const ROUNDS = amount(7);
const CALLS = amount(150);
/** Number of calls of each way before the first round, so that the compiler has optimized their code. */
const WARM = amount(1_500);
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
  /** Whether the proxy has the token's key, and proves calls by codes of a holder session. */
  readonly inSession?: boolean;
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
    name: "added, token verified in a holder session, within the ttl",
    atMost: 0.5,
    config: { definitionTtlMs: 600_000 },
    inSession: true,
  },
  {
    name: "added, and its budget reserved, within the ttl",
    atMost: 1,
    config: { definitionTtlMs: 600_000 },
    cost: 1,
  },
  {
    name: "added, and its budget reserved for each call by itself, within the ttl",
    config: { definitionTtlMs: 600_000, callsPerReservation: 1 },
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

/** A call of the server itself, by the client of the SDK. */
async function bareCall() {
  const client = new Client(
    { name: "bare", version: "1.0.0" },
    { versionNegotiation: { mode: { pin: "2026-07-28" } } },
  );
  await client.connect(new StdioClientTransport({ command: process.execPath, args: [SERVER, "announces"] }));
  const call: Call = async (n) => () => client.callTool({ name: "echo", arguments: { n } });
  return { call, close: () => client.close() };
}

const AUDIENCE = "mcp:echo";

/** Opens a holder session, and returns a function that presents the token with a code of this session. */
async function sessionOf({ url, transport }: McpPlatform, { token, keypair: key }: Grant) {
  const opener = createClient(HolderSessionService, transport);
  const holder = { engine, keypair: key, token, publicUrl: url };
  const sessions = new ProofSessions(holder, opener, AUDIENCE);
  await sessions.current();
  const fail = (thrown: unknown) => {
    throw thrown;
  };
  const keySessions = { ready: () => sessions.ready(fail), forget: fail };
  return () => heldToken({ token, key, audience: AUDIENCE, now: systemClock.now, sessions: keySessions });
}

async function proxiedCall(
  { config: extra, cost = 0, announces = false, inSession = false }: Way,
  platform: McpPlatform,
  holder: Grant,
) {
  const held = inSession ? await sessionOf(platform, holder) : undefined;
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
    audience: () => AUDIENCE,
    onFault: (subject, thrown) => {
      throw new Error(subject, { cause: thrown });
    },
  });
  const { token, keypair } = holder;
  const call: Call = async (n) => {
    const args = { n };
    const claims = { htm: "MCP", htu: AUDIENCE, token, arguments: args };
    const proof = () => ({ jwt: createProof(engine, keypair, claims), method: "MCP", target: AUDIENCE });
    const presentation = held?.() ?? once(token, "", proof());
    return () =>
      proxy.handle({ method: "tools/call", params: { name: "echo", arguments: args }, presentation });
  };
  return { call, close: () => proxy.close() };
}

const medianOf = (values: readonly number[]) =>
  values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;

function shuffled<T>(items: readonly T[]): T[] {
  const keyed = items.map((item) => ({ item, key: randomInt(2 ** 32) }));
  return keyed.toSorted((a, b) => a.key - b.key).map(({ item }) => item);
}

/** Returns, for each way, what it adds to a bare call in each round, as a multiple of the bare call. */
async function measure(bare: Call, ways: readonly Call[]): Promise<{ bareMs: number; added: number[][] }> {
  const all = [bare, ...ways];
  const added: number[][] = ways.map(() => []);
  const bareTimes: number[] = [];
  let n = 0;
  for (let round = -1; round < ROUNDS; round++) {
    const times = all.map((): number[] => []);
    for (let i = 0; i < (round < 0 ? WARM : CALLS); i++) {
      // The order is random, because a call costs less after a similar one.
      for (const { call, at } of shuffled(all.map((call, at) => ({ call, at })))) {
        const run = await call(n++);
        // Waits until the work that follows an earlier response, such as a charge, is done. That work must not add to
        // this call.
        for (let waited = 0; waited < TURNS; waited++) await systemTimers.nextTurn();
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
  const bare = await bareCall();
  const proxied = await Promise.all(WAYS.map((way) => proxiedCall(way, platform, holder)));
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
