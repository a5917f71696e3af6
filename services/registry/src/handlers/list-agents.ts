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
import { present } from "../rules/agent.ts";
import { searchKeys } from "../rules/registration.ts";
import { listAgentsByKeys } from "../store/agent-keys.ts";
import { type AgentFilter, listAgents as queryAgents } from "../store/agents.ts";
import { changeBounds } from "../store/changes.ts";

/** AgentService.ListAgents. */
export async function listAgents(
  registry: RegistryContext,
  request: ListAgentsRequest,
  context: HandlerContext,
): Promise<ListAgentsResponse> {
  const viewer = viewerFor(await identify(registry, context), "");
  const filter: AgentFilter = {
    status: request.status === AgentStatus.UNSPECIFIED ? AgentStatus.ACTIVE : request.status,
    health: request.health,
    capabilityId: request.capabilityId,
    organization: request.organization,
    principal: request.principal,
  };
  const protocols = request.protocol === "" ? [] : [request.protocol];
  const keys = searchKeys({ tags: request.tags, protocols, organization: "" });
  const filters = { list: "agents", ...filter, ...(keys.length > 0 && { keys }) };
  const [after] = readPosition(request.pageToken, filters, ["string"]) ?? [""];
  const size = pageSize(request.pageSize);
  // One more than is answered tells whether there is more.
  const {
    found,
    view,
    last: revision,
  } = await registry.store.read(async (tx) => {
    const view = await registry.guard.view(tx);
    const { last } = await changeBounds(tx);
    const page = { after, limit: size + 1, view, viewer };
    const found =
      keys.length === 0
        ? await queryAgents(tx, filter, page)
        : await listAgentsByKeys(tx, registry.index, keys, filter, page);
    return { view, last, found };
  });
  const shown = found.agents.map((agent) => present(agent, view));
  const { items: page, more } = cutPage(shown, size, (agent) => bytesOf(AgentSchema, agent));
  // Few were found on a long way: the caller decides whether to go on.
  const last = more ? page.at(-1)?.id : found.stoppedAt;
  return create(ListAgentsResponseSchema, {
    revision: BigInt(revision),
    agents: page,
    nextPageToken: last === undefined ? "" : encodePageToken([last], filters),
  });
}
