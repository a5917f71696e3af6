import { type ChildProcess, fork } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createClient } from "@connectrpc/connect";
import { AgentService } from "@depute/contracts/depute/registry/v1/agent_service_pb";
import { createGrpcJsTransport } from "@depute/grpc-js";
import { amount } from "../amount.ts";
import type { Benchmark } from "../bench.ts";
import type { Report, Round } from "./caller.ts";

/**
 * Measures a modest caller, with one create in flight, alone and beside a greedy caller with 3,000 creates in flight.
 * The platform and both callers have processes of their own. Rounds alone and beside the greedy caller alternate.
 */

const IN_FLIGHT = Number(process.env.DEPUTE_BENCH_IN_FLIGHT ?? 3_000);
const ROUNDS = amount(5);
const WARM_UP_CALLS = amount(3_000);
/** Milliseconds of the modest caller's rounds. A greedy round begins earlier and ends later. */
const MODEST_MS = amount(5_000, 500);
const LEAD_MS = amount(2_000, 200);
const GREEDY_MS = LEAD_MS + MODEST_MS + 1_000;
const CALLERS = ["greedy", "modest"] as const;

interface Rounds {
  alone: number[];
  beside: number[];
  greedyRate: number[];
}

export default function benchmarks(): Benchmark[] {
  const rounds: Rounds = { alone: [], beside: [], greedyRate: [] };
  return [
    {
      name: `a caller beside another with ${IN_FLIGHT} creates in flight`,
      figures: [
        {
          name: "p50 alone",
          unit: "ms",
          async measure() {
            await measureRounds(rounds);
            return median(rounds.alone);
          },
        },
        { name: "p50 beside", unit: "ms", measure: () => median(rounds.beside) },
        {
          name: "p50 beside, against alone",
          unit: "times",
          atMost: 2,
          measure: () => median(rounds.beside) / median(rounds.alone),
        },
        {
          name: "creates of the greedy caller within one of the other",
          unit: "creates",
          measure: () => (median(rounds.greedyRate) * median(rounds.beside)) / 1000,
        },
        { name: "creates of the greedy caller", unit: "a second", measure: () => median(rounds.greedyRate) },
      ],
    },
  ];
}

async function measureRounds(rounds: Rounds): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "depute-bench-"));
  const credentials = join(folder, "credentials.json");
  writeFileSync(
    credentials,
    JSON.stringify(
      CALLERS.map((name) => ({
        principal: principalOf(name),
        sha256: sha256(`secret-of-${name}`).toString("hex"),
      })),
    ),
  );
  const args = ["--data-dir", folder, "--gateway-port", "0", "--log-level", "error", "--auth", "required"];
  const [server, { address }] = await start<{ address: string }>("server.ts", [
    ...args,
    "--credentials-file",
    credentials,
    ...(process.env.DEPUTE_BENCH_ARGS?.split(" ") ?? []),
  ]);
  for (const name of CALLERS) await registerAgent(address, name);
  const [greedy] = await start("caller.ts", callerArgs(address, "greedy", IN_FLIGHT));
  const [modest] = await start("caller.ts", callerArgs(address, "modest", 1));
  await play(modest, { calls: WARM_UP_CALLS });
  await play(greedy, { forMs: LEAD_MS });
  for (let round = 0; round < ROUNDS; round++) {
    rounds.alone.push(median((await play(modest, { forMs: MODEST_MS })).ms));
    const greedyRound = play(greedy, { forMs: GREEDY_MS });
    await new Promise((resolve) => setTimeout(resolve, LEAD_MS));
    const { ms, refused } = await play(modest, { forMs: MODEST_MS });
    if (refused > 0) throw new Error(`${refused} calls of the modest caller were refused`);
    rounds.beside.push(median(ms));
    rounds.greedyRate.push((1000 * (await greedyRound).ms.length) / GREEDY_MS);
  }
  await Promise.all([greedy, modest, server].map(ended));
  rmSync(folder, { recursive: true, force: true });
}

function callerArgs(address: string, name: string, atOnce: number): string[] {
  return [address, `secret-of-${name}`, `agent-of-${name}`, String(atOnce)];
}

async function registerAgent(address: string, name: string): Promise<void> {
  const transport = createGrpcJsTransport(address);
  const headers = { authorization: `Bearer secret-of-${name}` };
  const agent = { id: `agent-of-${name}`, principal: principalOf(name) };
  await createClient(AgentService, transport).registerAgent({ requestId: "bench", agent }, { headers });
  transport.close();
}

/** Starts a program of this folder, and resolves with its first message. */
function start<First>(file: string, args: readonly string[]): Promise<[ChildProcess, First]> {
  const child = fork(join(import.meta.dirname, file), args);
  return new Promise((resolve, reject) => {
    child.once("message", (first) => resolve([child, first as First]));
    child.once("exit", (code) => reject(new Error(`${file} ended with ${code}`)));
  });
}

function ended(child: ChildProcess): Promise<void> {
  return new Promise((resolve) => {
    child.removeAllListeners("exit").once("exit", () => resolve());
    child.disconnect();
  });
}

function play(caller: ChildProcess, round: Round): Promise<Report> {
  return new Promise((resolve) => {
    caller.once("message", (report) => resolve(report as Report));
    caller.send(round);
  });
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;
}

/** Returns the caller's principal: a text in the form of a public key, because only such principals own agents. */
function principalOf(name: string): string {
  return sha256(name).toString("base64url");
}

function sha256(text: string): Buffer {
  return createHash("sha256").update(text).digest();
}
