import { create } from "@bufbuild/protobuf";
import type { HandlerContext } from "@connectrpc/connect";
import { AgentSchema, AgentStatus } from "@depute/contracts/depute/registry/v1/agent_pb";
import {
  type ListAgentsRequest,
  type ListAgentsResponse,
  ListAgentsResponseSchema,
} from "@depute/contracts/depute/registry/v1/agent_service_pb";
import { encodePageToken, pageSize } from "@depute/core";
import { bytesOf, cutPage } from "@depute/service";
import { identify, type RegistryContext, viewerFor } from "../context.ts";
import { readPosition } from "../page-position.ts";
import { toAgentMessage } from "../rules/agent.ts";
import { searchKeys } from "../rules/registration.ts";
import { type AgentFilter, listAgents as queryAgents } from "../store/agents.ts";
import { changeBounds } from "../store/changes.ts";

/** Implements AgentService.ListAgents. */
export async function listAgents(
  registry: RegistryContext,
  request: ListAgentsRequest,
  context: HandlerContext,
): Promise<ListAgentsResponse> {
  const viewer = viewerFor(await identify(registry, context), "");
  const protocols = request.protocol === "" ? [] : [request.protocol];
  const filter: AgentFilter = {
    status: request.status === AgentStatus.UNSPECIFIED ? AgentStatus.ACTIVE : request.status,
    health: request.health,
    capabilityId: request.capabilityId,
    organization: request.organization,
    principal: request.principal,
    keys: searchKeys({ tags: request.tags, protocols, organization: "" }),
  };
  const filters = { list: "agents", ...filter };
  const [after] = readPosition(request.pageToken, filters, ["string"]) ?? [""];
  const size = pageSize(request.pageSize);
  // Reads one item more than the page holds, to find out whether another page follows.
  const {
    found,
    view,
    last: sequence,
  } = await registry.store.read(async (tx) => {
    const view = await registry.guard.view(tx);
    const { last } = await changeBounds(tx);
    const agentRows = await queryAgents(tx, filter, { after, limit: size + 1, view, viewer });
    return { view, last, found: agentRows };
  });
  const agentMessages = found.agents.map((agent) => toAgentMessage(agent, view));
  const { items: page, more } = cutPage(agentMessages, size, (agent) => bytesOf(AgentSchema, agent));
  // If the search reached its limit of rows before the page was full, the next page begins after the last row that the
  // search read.
  const last = more ? page.at(-1)?.id : found.stoppedAt;
  return create(ListAgentsResponseSchema, {
    sequence: BigInt(sequence),
    agents: page,
    nextPageToken: last === undefined ? "" : encodePageToken([last], filters),
  });
}
