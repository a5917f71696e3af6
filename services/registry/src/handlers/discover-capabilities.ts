import { create } from "@bufbuild/protobuf";
import type { HandlerContext } from "@connectrpc/connect";
import { AgentHealth, AgentStatus } from "@depute/contracts/depute/registry/v1/agent_pb";
import {
  type DiscoverCapabilitiesRequest,
  type DiscoverCapabilitiesResponse,
  DiscoverCapabilitiesResponseSchema,
  type DiscoveredCapability,
  DiscoveredCapabilitySchema,
} from "@depute/contracts/depute/registry/v1/discovery_service_pb";
import { encodePageToken, type PageFilters, pageSize } from "@depute/core";
import { bytesOf, cutPage } from "@depute/service";
import type { ReadTx } from "@depute/store";
import { agentNotFound, identify, type RegistryContext, viewerFor } from "../context.ts";
import { readPosition } from "../page-position.ts";
import { isLive } from "../rules/agent.ts";
import { toRef, toSummary, withHash } from "../rules/levels.ts";
import { compareRanked, passes, queryWords, type Ranked, score } from "../rules/match.ts";
import { searchKeys } from "../rules/registration.ts";
import { countTokens, type LevelledCapability } from "../rules/tokens.ts";
import { versionHash } from "../rules/version-hash.ts";
import { findVisible } from "../store/agents.ts";
import {
  type CapabilityFilter,
  type CapabilityRow,
  type CapabilityView,
  capabilitiesAt,
  type FullCapability,
  listCapabilities,
  loadFull,
  searchCapabilities,
} from "../store/capabilities.ts";
import type { Place } from "../store/key-walk.ts";

/** The members of a search request, with defaults for absent members. */
interface Search extends CapabilityFilter {
  readonly keys: readonly string[];
  readonly health: AgentHealth;
  readonly minTrust: number;
  readonly query: string;
  readonly threshold: number;
  readonly topK: number;
}

/** A page of results; `nextPageToken` is empty on the last page. */
interface Page {
  readonly rows: readonly CapabilityRow[];
  readonly nextPageToken: string;
  readonly truncated: boolean;
}

/** The position, size and view of a page. */
interface PageRequest {
  readonly filters: PageFilters;
  readonly token: string;
  readonly size: number;
  readonly sight: CapabilityView;
}

/** Implements DiscoveryService.DiscoverCapabilities. */
export async function discoverCapabilities(
  registry: RegistryContext,
  request: DiscoverCapabilitiesRequest,
  context: HandlerContext,
): Promise<DiscoverCapabilitiesResponse> {
  const viewer = viewerFor(await identify(registry, context), request.viewer);
  const search = readSearch(request);
  const filters: PageFilters = {
    list: "capabilities",
    viewer: viewer === "all" ? "" : viewer.principal,
    ...search,
  };
  const size = pageSize(request.pageSize);
  return registry.store.read(async (tx) => {
    const sight = { viewer, view: await registry.guard.view(tx) };
    await checkRequestedAgent(tx, search, sight);
    const find = search.query === "" ? listPage : rankPage;
    const page = { filters, token: request.pageToken, size, sight };
    const matches = await find(tx, search, page);
    const { rows } = matches;
    const messages =
      request.level === 0
        ? rows.map((capability) => toLevel0(capability, registry.hashLength))
        : (await loadFull(tx, rows)).map((capability) =>
            toLevel(request.level, capability, registry.hashLength),
          );
    const sizeOf = (one: DiscoveredCapability) => bytesOf(DiscoveredCapabilitySchema, one);
    const { items: capabilities, more } = cutPage(messages, size, sizeOf);
    // If the page exceeds the size limit, the next page begins after the last entry that fits.
    const { nextPageToken, truncated } = more
      ? await find(tx, search, { ...page, size: capabilities.length })
      : matches;
    const tokens = BigInt(
      countTokens(capabilities.map(({ capability }) => capability as LevelledCapability)),
    );
    return create(DiscoverCapabilitiesResponseSchema, { capabilities, nextPageToken, tokens, truncated });
  });
}

/**
 * If a request names an agent, requires that the agent is visible and not removed. The agent must also be live, unless
 * the request filters by health.
 *
 * @throws DeputeError AGENT_NOT_FOUND
 */
async function checkRequestedAgent(
  tx: ReadTx,
  { agentId, health }: Search,
  { viewer, view }: CapabilityView,
): Promise<void> {
  if (agentId === undefined) return;
  const agent = await findVisible(tx, agentId, viewer);
  const found = agent !== undefined && agent.status !== AgentStatus.REMOVED;
  if (!found || (health === AgentHealth.UNSPECIFIED && !isLive(agent, view))) throw agentNotFound(agentId);
}

/** Returns the search that a request describes. An empty text of the request becomes undefined, except the query. */
function readSearch(request: DiscoverCapabilitiesRequest): Search {
  const { filter, agentId, organization, protocol, tags, health, minTrust } = request;
  return {
    agentId: agentId || undefined,
    id: filter?.id || undefined,
    category: filter?.category || undefined,
    keys: searchKeys({ tags, protocols: protocol === "" ? [] : [protocol], organization }),
    health,
    minTrust,
    query: filter?.query ?? "",
    threshold: filter?.threshold ?? 0,
    topK: filter?.topK ?? Number.MAX_SAFE_INTEGER,
  };
}

/**
 * Returns a page of capabilities sorted by id, then by agent. `served` is the number of entries on earlier pages,
 * because `top_k` limits the total of all pages.
 */
async function listPage(
  tx: ReadTx,
  search: Search,
  { filters, token, size, sight }: PageRequest,
): Promise<Page> {
  const [served, id, agentId] = readPosition(token, filters, ["number", "string", "string"]) ?? [0, "", ""];
  const limit = Math.min(size, search.topK - served);
  if (limit <= 0) return { rows: [], nextPageToken: "", truncated: false };
  const list = { ...sight, after: { id, agentId }, limit: limit + 1 };
  const { rows, stoppedAt } = await listCapabilities(tx, search, list);
  const page = pageOf(rows, limit, served, search.topK, filters, (last) => [last.id, last.agentId]);
  if (stoppedAt === undefined || page.nextPageToken !== "") return page;
  // The search reached its limit of rows before the page was full. The next page begins after the last row that the
  // search read.
  const position = [served + page.rows.length, stoppedAt.id, stoppedAt.agentId];
  return { ...page, nextPageToken: encodePageToken(position, filters) };
}

/**
 * Returns a page of capabilities by descending score. Capabilities with equal scores are sorted by id, then by agent.
 */
async function rankPage(
  tx: ReadTx,
  search: Search,
  { filters, token, size, sight }: PageRequest,
): Promise<Page> {
  const position = readPosition(token, filters, ["number", "number", "string", "string"]);
  const served = position?.[0] ?? 0;
  const after = position && { score: position[1], id: position[2], agentId: position[3] };
  const limit = Math.min(size, search.topK - served);
  const words = queryWords(search.query);
  if (limit <= 0 || words.length === 0) return { rows: [], nextPageToken: "", truncated: false };
  const { matches, truncated } = await searchCapabilities(tx, search, words);
  const candidates: Candidate[] = [];
  for (const { id, agentId, words: text } of matches) {
    const candidate = { id, agentId, score: score(words, text) };
    if (!passes(candidate.score, search.threshold)) continue;
    if (after === undefined || compareRanked(candidate, after) > 0) candidates.push(candidate);
  }
  const best = await firstPassingCandidates(tx, search, candidates.sort(compareRanked), sight, limit + 1);
  const page = pageOf(best, limit, served, search.topK, filters, (last) => [
    last.score,
    last.id,
    last.agentId,
  ]);
  return { ...page, truncated };
}

/** A capability with its score, before the check of the filter. */
type Candidate = Ranked & Place;

/** Applies the filter to candidates, highest score first, until `limit` have passed. */
async function firstPassingCandidates(
  tx: ReadTx,
  search: Search,
  candidates: readonly Candidate[],
  sight: CapabilityView,
  limit: number,
): Promise<(CapabilityRow & { score: number })[]> {
  const passing: (CapabilityRow & { score: number })[] = [];
  for (let at = 0, size = limit; at < candidates.length && passing.length < limit; at += size) {
    const batch = candidates.slice(at, at + size);
    const scores = new Map(batch.map((each) => [`${each.agentId}/${each.id}`, each.score]));
    const rows = await capabilitiesAt(tx, search, batch, sight);
    const ranks = rows.map((capability) => ({
      ...capability,
      score: scores.get(`${capability.agentId}/${capability.id}`) ?? 0,
    }));
    passing.push(...ranks.sort(compareRanked));
  }
  return passing.slice(0, limit);
}

function pageOf<T extends CapabilityRow>(
  found: readonly T[],
  limit: number,
  served: number,
  topK: number,
  filters: PageFilters,
  place: (last: T) => (string | number)[],
): Page {
  const rows = found.slice(0, limit);
  const total = served + rows.length;
  const last = rows.at(-1);
  const isLast = last === undefined || found.length <= limit || total >= topK;
  const nextPageToken = isLast ? "" : encodePageToken([total, ...place(last)], filters);
  return { rows, nextPageToken, truncated: false };
}

function toLevel0(capability: CapabilityRow, hashLength: number): DiscoveredCapability {
  const ref = toRef({
    id: capability.id,
    cat: capability.category,
    h: versionHash(capability.digest, hashLength),
  });
  return toDiscovered(capability, { case: "reference", value: ref });
}

function toLevel(level: number, capability: FullCapability, hashLength: number): DiscoveredCapability {
  const full = withHash(capability.full, capability.digest, hashLength);
  return level === 1
    ? toDiscovered(capability, { case: "summary", value: toSummary(full) })
    : toDiscovered(capability, { case: "full", value: full });
}

function toDiscovered(
  { agentId, agentVersion }: CapabilityRow,
  capability: DiscoveredCapability["capability"],
): DiscoveredCapability {
  return create(DiscoveredCapabilitySchema, { agentId, agentVersion, capability });
}
