/**
 * The delegate: a separate process that calls gRPC through @grpc/grpc-js. Arguments: the platform's address, and the
 * milliseconds to pause after each batch. When the worker is ready it prints its agent id and principal, and then works
 * until it is stopped. SENTIMENT_SEED sets the worker's key, 32 bytes in base64url; without it the key is random.
 */
import { createClient } from "@connectrpc/connect";
import { clientsOver, holderInterceptor, startWorker } from "@depute/client";
import { WorkerService } from "@depute/contracts/depute/tasks/v1/worker_service_pb";
import { decodeBase64Url } from "@depute/core";
import { generateKeypair, keypairFromSeed } from "@depute/dct";
import { nativeEngine as engine } from "@depute/dct/native";
import { createGrpcJsTransport } from "@depute/grpc-js";
import { introduce } from "./agent.ts";
import { attestCompletion } from "./attest.ts";
import { analyse } from "./work.ts";

const [url = "http://127.0.0.1:8080", pauseMs = "0"] = process.argv.slice(2);
// Workers that share a key are one agent, so they continue each other's work.
const seed = decodeBase64Url(process.env.SENTIMENT_SEED ?? "");
const keypair = seed?.length === 32 ? keypairFromSeed(engine, seed) : generateKeypair(engine);
const principal = keypair.principal.id;
const agentId = `sentiment-${principal.replace(/[^A-Za-z0-9]/g, "").slice(0, 8)}`;

const transport = createGrpcJsTransport(new URL(url).host, {
  interceptors: [holderInterceptor({ engine, keypair, publicUrl: url })],
});
const clients = clientsOver(transport);
await introduce(clients, agentId, principal);
const beat = setInterval(() => {
  clients.agents.heartbeatAgent({ agentId }).catch((error) => console.error("heartbeat:", error.message));
}, 10_000);

const worker = startWorker({
  calls: createClient(WorkerService, transport),
  agentId,
  worker: `pid ${process.pid}`,
  onError: (error) => console.error("worker:", error instanceof Error ? error.message : error),
  async work(input, context) {
    const began = Date.now();
    const result = await analyse(input, context, Number(pauseMs));
    // A task with a contract needs an attestation of its result; other tasks need none.
    if (context.task.contractId === "") return result;
    const attestation = attestCompletion(engine, keypair, context.task, result, Date.now() - began);
    await clients.attestations.recordAttestation({ attestation });
    return { ...result, attestationId: attestation.id };
  },
});
console.log(JSON.stringify({ ready: true, agentId, principal }));

for (const signal of ["SIGTERM", "SIGINT"] as const) {
  process.once(signal, async () => {
    clearInterval(beat);
    await worker.stop(2_000);
    await clients.agents.deregisterAgent({ agentId }).catch(() => {});
    transport.close();
  });
}
