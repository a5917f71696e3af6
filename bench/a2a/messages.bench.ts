import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connect } from "@depute/client";
import { amount } from "../amount.ts";
import type { Benchmark } from "../bench.ts";
import { inFlight } from "../in-flight.ts";
import { startProcess, startReference } from "./reference.ts";
import { grpcSender, jsonRpcSender, type Sender } from "./senders.ts";

/**
 * Measures SendMessage over A2A until its task has completed, with 32 calls in flight. The platform stores each
 * task and event on disk. A worker of the TypeScript SDK in this process completes the tasks. The reference is
 * the A2A SDK's server: it stores tasks in memory, and its agent answers in the server's own process. The same
 * client calls both servers.
 */

const AGENT = "worker";
const IN_FLIGHT = 32;
const MESSAGES = amount(3_000);
const WARM_UP = amount(6_000);
const ROUNDS = amount(3);

/** Starts both servers, and returns a sender for each server. Both senders use the same binding. */
type Contenders = () => Promise<{ platform: Sender; reference: Sender; close(): Promise<void> }>;

export default function benchmarks(): Benchmark[] {
  return [
    benchmark("gRPC", (platformUrl, { grpc }) => ({
      platform: grpcSender(new URL(platformUrl).host, AGENT),
      reference: grpcSender(grpc),
    })),
    benchmark("JSON-RPC", (platformUrl, { jsonRpc }) => ({
      platform: jsonRpcSender(`${platformUrl}/a2a/${AGENT}`),
      reference: jsonRpcSender(jsonRpc),
    })),
  ];
}

function benchmark(
  binding: string,
  sendersOf: (
    platformUrl: string,
    reference: { grpc: string; jsonRpc: string },
  ) => { platform: Sender; reference: Sender },
): Benchmark {
  let rates = { platform: 0, reference: 0 };
  return {
    name: `SendMessage to completion over ${binding}, ${IN_FLIGHT} in flight`,
    figures: [
      {
        name: "Depute, durable",
        unit: "a second",
        async measure() {
          rates = await compare(() => start(sendersOf));
          return rates.platform;
        },
      },
      { name: "the A2A SDK's server, in memory", unit: "a second", measure: () => rates.reference },
      {
        name: "Depute, against it",
        unit: "%",
        atLeast: 70,
        measure: () => (100 * rates.platform) / rates.reference,
      },
    ],
  };
}

async function start(sendersOf: Parameters<typeof benchmark>[1]): ReturnType<Contenders> {
  const folder = mkdtempSync(join(tmpdir(), "depute-bench-"));
  const server = await startProcess<{ url: string }>("platform-server.ts", folder);
  const reference = await startReference();
  const depute = connect(server.url);
  await depute.register({ id: AGENT });
  const worker = depute.work({
    agentId: AGENT,
    capacity: 2 * IN_FLIGHT,
    work: async () => ({ output: { words: 3 } }),
  });
  const senders = sendersOf(server.url, reference);
  return {
    ...senders,
    async close() {
      senders.platform.close();
      senders.reference.close();
      await worker.stop();
      await depute.close();
      await Promise.all([server.close(), reference.close()]);
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/**
 * Measures both servers in several rounds, in turns. Returns the best round of each server, in messages per
 * second.
 */
async function compare(startBoth: Contenders): Promise<{ platform: number; reference: number }> {
  const { platform, reference, close } = await startBoth();
  const rateOf = async (sender: Sender, messages: number) => {
    const startMs = performance.now();
    await inFlight(messages, IN_FLIGHT, () => sender.send());
    return (messages * 1_000) / (performance.now() - startMs);
  };
  await rateOf(platform, WARM_UP);
  await rateOf(reference, WARM_UP);
  const rates = { platform: 0, reference: 0 };
  for (let round = 0; round < ROUNDS; round++) {
    rates.platform = Math.max(rates.platform, await rateOf(platform, MESSAGES));
    rates.reference = Math.max(rates.reference, await rateOf(reference, MESSAGES));
  }
  await close();
  return rates;
}
