import { join } from "node:path";
import { type Client, createClient } from "@connectrpc/connect";
import { AgentService } from "@depute/contracts/depute/registry/v1/agent_service_pb";
import { DiscoveryService } from "@depute/contracts/depute/registry/v1/discovery_service_pb";
import { createGrpcJsTransport } from "@depute/grpc-js";
import { startApart } from "../apart.ts";

/** A registry in a process of its own, with clients. */
export interface Served {
  readonly discovery: Client<typeof DiscoveryService>;
  readonly agents: Client<typeof AgentService>;
  close(): Promise<void>;
}

/** Starts a registry with a number of agents. DEPUTE_BENCH_DATA keeps it in a folder for further runs. */
export async function serve(count: number): Promise<Served> {
  const dataFolder = process.env.DEPUTE_BENCH_DATA;
  const folder = dataFolder === undefined ? [] : [join(dataFolder, String(count))];
  // On Postgres, each size of the registry has its own schema.
  const env = { DEPUTE_POSTGRES_SCHEMA_PREFIX: `bench_${count}` };
  const server = await startApart<{ address: string }>(
    join(import.meta.dirname, "server.ts"),
    [String(count), ...folder],
    { env, flags: [] },
  );
  const transport = createGrpcJsTransport(server.started.address);
  return {
    discovery: createClient(DiscoveryService, transport),
    agents: createClient(AgentService, transport),
    close() {
      transport.close();
      return server.stop();
    },
  };
}
