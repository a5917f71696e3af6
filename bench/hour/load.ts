import { createClient } from "@connectrpc/connect";
import { AgentService } from "@depute/contracts/depute/registry/v1/agent_service_pb";
import { createGrpcJsTransport } from "@depute/grpc-js";
import { Load } from "./flow.ts";

/**
 * Loads the platform at the address in the argument until its parent ends, and answers each message with the
 * minute's figures.
 */

const [address = ""] = process.argv.slice(2);
const load = new Load(address);
process.on("disconnect", () => process.exit());
process.on("message", () => process.send?.(load.sample()));

const transport = createGrpcJsTransport(address);
const agents = createClient(AgentService, transport);
for (const id of load.agentIds) await agents.registerAgent({ requestId: `register ${id}`, agent: { id } });
transport.close();
load.start();
process.send?.({ started: true });
