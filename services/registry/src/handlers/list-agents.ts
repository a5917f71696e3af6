import { create } from "@bufbuild/protobuf";
import type { HandlerContext } from "@connectrpc/connect";
import { AgentStatus } from "@depute/contracts/depute/registry/v1/agent_pb";
import {
  type ListAgentsRequest,
  type ListAgentsResponse,
  ListAgentsResponseSchema,
} from "@depute/contracts/depute/registry/v1/agent_service_pb";
import { encodePageToken, pageSize } from "@depute/core";
import { identify, type RegistryContext } from "../context.ts";
import { readPosition } from "../page-position.ts";
import { present } from "../rules/agent.ts";
import { type AgentFilter, listAgents as queryAgents } from "../store/agents.ts";

/** AgentService.ListAgents. */
export async function listAgents(
  registry: RegistryContext,
  request: ListAgentsRequest,
  context: HandlerContext,
): Promise<ListAgentsResponse> {
  await identify(registry, context);
  const filter: AgentFilter = {
    status: request.status === AgentStatus.UNSPECIFIED ? AgentStatus.ACTIVE : request.status,
    health: request.health,
    capabilityId: request.capabilityId,
    organization: request.organization,
    principal: request.principal,
  };
  const filters = { list: "agents", ...filter };
  const [after] = readPosition(request.pageToken, filters, ["string"]) ?? [""];
  const size = pageSize(request.pageSize);
  const now = registry.clock.now();
  // One more than is answered tells whether there is more.
  const found = await registry.store.read((tx) => queryAgents(tx, filter, { after, limit: size + 1, now }));
  const page = found.slice(0, size);
  const last = page.at(-1)?.record.id;
  return create(ListAgentsResponseSchema, {
    agents: page.map((agent) => present(agent, now)),
    nextPageToken: last !== undefined && found.length > size ? encodePageToken([last], filters) : "",
  });
}
