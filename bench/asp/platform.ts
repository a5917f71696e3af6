import { type ChildProcess, fork } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Client, createClient } from "@connectrpc/connect";
import { AgentService } from "@depute/contracts/depute/registry/v1/agent_service_pb";
import { TrustService } from "@depute/contracts/depute/registry/v1/trust_service_pb";
import { SessionService } from "@depute/contracts/depute/tasks/v1/session_service_pb";
import { newId } from "@depute/core";
import { createGrpcJsTransport } from "@depute/grpc-js";
import { ALPHA, BETA } from "./parties.ts";

/** The tasks service in a separate process, with clients over @grpc/grpc-js. */
export interface Platform {
  readonly sessions: Client<typeof SessionService>;
  /** The trust score that the registry returns for both parties. */
  readonly score: number;
  close(): Promise<void>;
}

export async function startPlatform(): Promise<Platform> {
  const dataDir = mkdtempSync(join(tmpdir(), "depute-bench-"));
  const child = fork(join(import.meta.dirname, "server.ts"), [dataDir]);
  const { registry, tasks } = await firstMessage(child);
  const registryTransport = createGrpcJsTransport(registry);
  const agents = createClient(AgentService, registryTransport);
  for (const { id, key: principal, uri: agentId } of [ALPHA, BETA]) {
    const card = { agentId, name: id };
    await agents.registerAgent({ requestId: newId(), agent: { id, principal, card } });
  }
  const { overall } = await createClient(TrustService, registryTransport).getTrust({ agentId: ALPHA.id });
  registryTransport.close();
  const transport = createGrpcJsTransport(tasks);
  return {
    sessions: createClient(SessionService, transport),
    score: Math.round((overall?.score ?? 0) * 10) / 10,
    async close() {
      transport.close();
      child.disconnect();
      await new Promise<void>((resolve) => child.once("exit", () => resolve()));
      rmSync(dataDir, { recursive: true, force: true });
    },
  };
}

function firstMessage(child: ChildProcess): Promise<{ registry: string; tasks: string }> {
  return new Promise((resolve, reject) => {
    child.once("message", (message) => resolve(message as { registry: string; tasks: string }));
    child.once("exit", () => reject(new Error("the server has ended")));
  });
}
