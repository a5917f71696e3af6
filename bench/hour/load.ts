import { createClient } from "@connectrpc/connect";
import { AgentService } from "@depute/contracts/depute/registry/v1/agent_service_pb";
import { createGrpcJsTransport } from "@depute/grpc-js";
import { startAuthorityLoad } from "./authority.ts";
import { Load } from "./flow.ts";

/**
 * Loads the platform at the address in the first argument until the parent process ends. Answers each message with the
 * figures since the previous message. With `tokens` as the second argument, the load uses tokens too.
 */

const [address = "", more = ""] = process.argv.slice(2);
const load = new Load(address);
process.on("disconnect", () => process.exit());
process.on("message", () => process.send?.(load.sample()));

const transport = createGrpcJsTransport(address);
const agents = createClient(AgentService, transport);
for (const id of load.agentIds) await agents.registerAgent({ requestId: `register ${id}`, agent: { id } });
transport.close();
load.start();
if (more === "tokens") startAuthorityLoad(address, (error) => load.failed(error));
process.send?.({ started: true });
