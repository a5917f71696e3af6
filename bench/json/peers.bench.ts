import { join } from "node:path";
import { turns } from "../amount.ts";
import { type Apart, startApart } from "../apart.ts";
import type { Benchmark } from "../bench.ts";
import { cpuOf, cpuPlayer } from "../rate-of-cpu.ts";
import { inTurns } from "../turns.ts";

/**
 * Compares one cheap call of each JSON wire with bare node:http that answers the same document. Both parse the request
 * and write the answer for each call. The wire also checks the request, and calls a service that reads its store.
 */

const ROUNDS = turns(7);
const SECONDS = 1;
const CONNECTIONS = 32;
const AGENT = "worker";

interface WireCall {
  readonly path: string;
  /** The body of a POST; absent for a GET. */
  readonly body?: object;
}

const rpc = (method: string, params: object) => ({ jsonrpc: "2.0", id: 1, method, params });
const CALLS: Record<string, WireCall> = {
  "NEKTE, nekte.discover": { path: "/nekte", body: rpc("nekte.discover", { level: 0 }) },
  "A2A, the card of an agent": { path: `/a2a/${AGENT}/.well-known/agent-card.json` },
  "CAP, the list of agents": { path: "/cap/agents" },
  "Agenta, the list of offers": { path: "/agenta/offers" },
  "DelegateOS, the list of revocations": { path: "/delegateos/revocations" },
  "Connect JSON, GetAgent": {
    path: "/depute.registry.v1.AgentService/GetAgent",
    body: { agentId: AGENT },
  },
};

interface Started {
  readonly url: string;
}

export default async function benchmarks(): Promise<Benchmark[]> {
  const platform = await startApart<Started>(join(import.meta.dirname, "platform-server.ts"));
  const { url } = platform.started;
  const agent = { requestId: "bench", agent: { id: AGENT, description: "counts words" } };
  await ask(url, { path: "/depute.registry.v1.AgentService/RegisterAgent", body: agent });
  const documents: Record<string, unknown> = {};
  for (const call of Object.values(CALLS)) documents[call.path] = await ask(url, call);
  const bare = await startApart<Started>(join(import.meta.dirname, "bare-server.ts"), [
    JSON.stringify(documents),
  ]);
  const all = Object.entries(CALLS).map(([name, call]) => compare(name, call, platform, bare));
  const last = all.at(-1) as Benchmark;
  const close = async () => {
    await Promise.all([platform.stop(), bare.stop()]);
  };
  return [...all.slice(0, -1), { ...last, close }];
}

function compare(name: string, call: WireCall, platform: Apart<Started>, bare: Apart<Started>): Benchmark {
  const names = ["bare node:http", "Depute"] as const;
  const loadOf = ({ url }: Started) => ({
    url: `${url}${call.path}`,
    headers: call.body === undefined ? [] : ["content-type: application/json"],
    body: call.body === undefined ? new Uint8Array() : Buffer.from(JSON.stringify(call.body)),
    connections: CONNECTIONS,
    inFlightOfEach: 1,
    seconds: SECONDS,
    http: "1.1" as const,
  });
  return inTurns({
    name: `${name}, against bare node:http`,
    unit: "calls a second of CPU time",
    rounds: ROUNDS,
    names,
    quotients: [{ name: "Depute, by bare node:http", of: names[1], by: names[0] }],
    start: async () => ({
      players: [
        cpuPlayer(names[0], () => cpuOf(bare), loadOf(bare.started)),
        cpuPlayer(names[1], () => cpuOf(platform), loadOf(platform.started)),
      ],
      stop: () => {},
    }),
  });
}

/** Makes a call that has to succeed. Returns the document. */
async function ask(url: string, { path, body }: WireCall): Promise<unknown> {
  const answer = await fetch(`${url}${path}`, {
    ...(body !== undefined && {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(body),
    }),
  });
  const text = await answer.text();
  if (!answer.ok) throw new Error(`${path}: ${answer.status} ${text}`);
  const document = JSON.parse(text) as { error?: unknown };
  if (document.error !== undefined) throw new Error(`${path}: ${text}`);
  return document;
}
