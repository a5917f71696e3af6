import { create } from "@bufbuild/protobuf";
import type { HandlerContext } from "@connectrpc/connect";
import {
  type AgentVersion,
  AgentVersionSchema,
  type GetAgentVersionRequest,
  type GetAgentVersionResponse,
  GetAgentVersionResponseSchema,
  type ListAgentVersionsRequest,
  type ListAgentVersionsResponse,
  ListAgentVersionsResponseSchema,
} from "@depute/contracts/depute/registry/v1/agent_service_pb";
import {
  DeputeError,
  ErrorReason,
  encodeHex,
  encodePageToken,
  invalid,
  pageSize,
  toTimestamp,
} from "@depute/core";
import { bytesOf, cutPage } from "@depute/service";
import { agentNotFound, identify, type RegistryContext, viewerFor } from "../context.ts";
import { readPosition } from "../page-position.ts";
import { digestBytes, ownerRecord } from "../rules/agent.ts";
import { findVisible } from "../store/agents.ts";
import { findVersion, listVersions, type StoredVersion, type VersionReference } from "../store/versions.ts";

/** Implements AgentService.GetAgentVersion. */
export async function getAgentVersion(
  registry: RegistryContext,
  request: GetAgentVersionRequest,
  context: HandlerContext,
): Promise<GetAgentVersionResponse> {
  const viewer = viewerFor(await identify(registry, context), "");
  const { agentId } = request;
  const reference = readReference(request.name);
  const version = await registry.store.read(async (tx) => {
    if ((await findVisible(tx, agentId, viewer)) === undefined) throw agentNotFound(agentId);
    return findVersion(tx, agentId, reference);
  });
  if (version !== undefined) return create(GetAgentVersionResponseSchema, { version: toMessage(version) });
  const fields = Object.entries(reference).map(([name, value]) => [name, String(value)]);
  throw new DeputeError(
    ErrorReason.AGENT_VERSION_NOT_FOUND,
    `${agentId} does not have this version; list its versions (AgentService.ListAgentVersions)`,
    {
      metadata: { agent: agentId, ...Object.fromEntries(fields) },
    },
  );
}

/** Implements AgentService.ListAgentVersions. */
export async function listAgentVersions(
  registry: RegistryContext,
  request: ListAgentVersionsRequest,
  context: HandlerContext,
): Promise<ListAgentVersionsResponse> {
  const viewer = viewerFor(await identify(registry, context), "");
  const { agentId } = request;
  const filters = { list: "agent-versions", agentId };
  const [before] = readPosition(request.pageToken, filters, ["number"]) ?? [Number.MAX_SAFE_INTEGER];
  const size = pageSize(request.pageSize);
  const versionRows = await registry.store.read(async (tx) => {
    if ((await findVisible(tx, agentId, viewer)) === undefined) throw agentNotFound(agentId);
    return listVersions(tx, agentId, before, size + 1);
  });
  const versions = versionRows.map((each) => ({ revision: each.revision, version: toMessage(each) }));
  const { items: page, more } = cutPage(versions, size, ({ version }) =>
    bytesOf(AgentVersionSchema, version),
  );
  const last = page.at(-1)?.revision;
  return create(ListAgentVersionsResponseSchema, {
    versions: page.map(({ version }) => version),
    nextPageToken: last !== undefined && more ? encodePageToken([last], filters) : "",
  });
}

function readReference(name: GetAgentVersionRequest["name"]): VersionReference {
  switch (name.case) {
    case "revision":
      return { revision: Number(name.value) };
    case "version":
      return { version: name.value };
    case "digest":
      return { digest: encodeHex(name.value) };
    default:
      throw invalid("name", "is required");
  }
}

function toMessage({ record, revision, digest, createTime }: StoredVersion): AgentVersion {
  const agent = ownerRecord(record);
  agent.revision = BigInt(revision);
  agent.digest = digestBytes(digest);
  return create(AgentVersionSchema, { agent, createTime: toTimestamp(createTime) });
}
