import { setTimeout } from "node:timers/promises";
import { createClient } from "@connectrpc/connect";
import { clientsOver, type DeputeClients, startWorker } from "@depute/client";
import type { Envelope } from "@depute/contracts/asp/v0/envelope_pb";
import { AgentService } from "@depute/contracts/depute/registry/v1/agent_service_pb";
import { SessionService } from "@depute/contracts/depute/tasks/v1/session_service_pb";
import { TokenService } from "@depute/contracts/depute/tokens/v1/token_service_pb";
import { newId } from "@depute/core";
import { createProof, keypairFromSeed } from "@depute/dct";
import { nativeEngine as engine } from "@depute/dct/native";
import { createGrpcJsTransport } from "@depute/grpc-js";
import { ALPHA, BETA, Chain } from "../asp/parties.ts";

/** One call, or several calls that belong together, as a client makes them. */
export interface Flow {
  readonly name: string;
  readonly run: () => Promise<unknown>;
}

const AGENT = "worker";
const IDLE_AGENT = "idle";
/** Milliseconds after which a delegation is stored and its stream waits for events. */
const SETTLED_MS = 100;

/** Returns the main flows, for a platform whose services and gateway listen at these addresses. */
export async function flows(urls: Readonly<Record<string, string>>): Promise<Flow[]> {
  const at = (name: string) => createGrpcJsTransport(new URL(urls[name] ?? "").host);
  const clients = clientsOver(at("gateway"));
  for (const id of [AGENT, IDLE_AGENT])
    await clients.agents.registerAgent({ requestId: newId(), agent: { id } });
  const work = async () => ({ output: { done: true } });
  startWorker({ calls: clients.workers, agentId: AGENT, work, capacity: 4 });
  const agents = createClient(AgentService, at("registry"));
  return [
    { name: "delegate", run: () => delegate(urls.gateway ?? "") },
    { name: "delegate-queued", run: () => delegateQueued(urls.gateway ?? "") },
    { name: "create-and-wait", run: () => createAndWait(clients) },
    { name: "verify-token", run: await verifyToken(createClient(TokenService, at("tokens"))) },
    { name: "asp-append", run: await appendMessage(clients, createClient(SessionService, at("tasks"))) },
    { name: "get-agent", run: () => agents.getAgent({ agentId: AGENT }) },
  ];
}

/** Makes a NEKTE delegation, from the request to the end of the stream. The worker's calls are included. */
async function delegate(url: string): Promise<void> {
  const text = await (await postDelegate(url, AGENT)).text();
  if (!text.includes("event: complete")) throw new Error(`the delegation did not complete: ${text}`);
}

/**
 * Makes a NEKTE delegation to an agent without workers, and returns when the task waits in the queue. So the
 * measurement contains no work of a worker.
 */
async function delegateQueued(url: string): Promise<void> {
  const leaving = new AbortController();
  await postDelegate(url, IDLE_AGENT, leaving.signal);
  await setTimeout(SETTLED_MS);
  leaving.abort();
}

async function postDelegate(url: string, agentId: string, signal?: AbortSignal): Promise<Response> {
  const params = {
    task: { id: newId(), desc: "flow", timeout_ms: 20_000 },
    context: { data: { n: 1 }, permissions: { forward: false, persist: true, derive: true }, ttl_s: 600 },
  };
  return fetch(`${url}/nekte/${agentId}`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "nekte.delegate", params }),
    ...(signal && { signal }),
  });
}

/** Creates a task over gRPC and waits for its end. The worker's calls are included. */
async function createAndWait({ tasks }: DeputeClients): Promise<void> {
  const { task } = await tasks.createTask({
    requestId: newId(),
    draft: { agentId: AGENT, description: "flow" },
  });
  await tasks.waitTask({ taskId: task?.id ?? "", timeout: { seconds: 20n } });
}

/** Calls VerifyToken with a holder's proof. */
async function verifyToken(tokens: ReturnType<typeof createClient<typeof TokenService>>) {
  const holder = keypairFromSeed(engine, new Uint8Array(32).fill(2));
  const { token } = await tokens.mintToken({
    requestId: newId(),
    delegatee: holder.principal.id,
    capabilities: [{ namespace: "docs", action: "read", resource: "/**" }],
    contractId: "ct_a1b2c3d4e5f6",
    maxChainDepth: 8,
    maxBudgetMicrocents: 1_000_000n,
  });
  const [htm, htu] = ["POST", "https://depute.example/depute.tasks.v1.TaskService/CreateTask"];
  return async () => {
    const proof = createProof(engine, holder, { htm, htu, token: token?.token ?? "" });
    const { result } = await tokens.verifyToken({
      token: { token: token?.token ?? "", format: "delegateos-sjt-v1" },
      requested: { namespace: "docs", action: "read", resource: "/a" },
      proof: { method: htm, target: htu, jwt: proof },
    });
    if (result.case !== "scope") throw new Error(`the token was denied: ${result.value?.type}`);
  };
}

/** Appends a signed message to a session of two parties. */
async function appendMessage(
  clients: DeputeClients,
  sessions: ReturnType<typeof createClient<typeof SessionService>>,
) {
  for (const { id, key: principal, uri: agentId } of [ALPHA, BETA]) {
    await clients.agents.registerAgent({
      requestId: newId(),
      agent: { id, principal, card: { agentId, name: id } },
    });
  }
  const { overall } = await clients.trust.getTrust({ agentId: ALPHA.id });
  const chain = new Chain(Math.round((overall?.score ?? 0) * 10) / 10);
  const [invitation, ...rest] = chain.opening();
  await sessions.createSession({ invitation: invitation as Envelope });
  for (const envelope of rest) await sessions.appendMessage({ envelope });
  return () => sessions.appendMessage({ envelope: chain.talk(1)[0] as Envelope });
}
