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
import type { AgentIndex } from "../agent-index/agent-index.ts";
import { agentNotFound, identify, type RegistryContext, viewerFor } from "../context.ts";
import { readPosition } from "../page-position.ts";
import { isLiving } from "../rules/agent.ts";
import { toRef, toSummary, withHash } from "../rules/levels.ts";
import { compareRanked, passes, queryWords, type Ranked, score } from "../rules/match.ts";
import { searchKeys } from "../rules/registration.ts";
import { type LevelledCapability, tokensOf } from "../rules/tokens.ts";
import { versionHash } from "../rules/version-hash.ts";
import { findVisible } from "../store/agents.ts";
import {
  type CapabilityFilter,
  type CapabilityPosition,
  type FullOffer,
  listOffers,
  loadFull,
  type Offer,
  type OfferSight,
  offersAt,
  searchOffers,
} from "../store/capabilities.ts";
import { listIntersection } from "../store/intersections.ts";

/** What is looked for: the request with its defaults filled in. */
interface Search extends CapabilityFilter {
  readonly keys: readonly string[];
  readonly health: AgentHealth;
  readonly minTrust: number;
  readonly query: string;
  readonly threshold: number;
  readonly topK: number;
}

/** A page, and the token of the next one or nothing. */
interface Page {
  readonly offers: readonly Offer[];
  readonly nextPageToken: string;
  readonly truncated: boolean;
}

/** What a page is read by. */
interface PageRequest {
  readonly filters: PageFilters;
  readonly token: string;
  readonly size: number;
  readonly sight: OfferSight;
  readonly index: AgentIndex;
}

/** DiscoveryService.DiscoverCapabilities. */
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
    await checkNamed(tx, search, sight);
    const find = search.query === "" ? listed : ranked;
    const page = { filters, token: request.pageToken, size, sight, index: registry.index };
    const found = await find(tx, search, page);
    const { offers } = found;
    const shown =
      request.level === 0
        ? offers.map((offer) => atLevel0(offer, registry.hashLength))
        : (await loadFull(tx, offers)).map((offer) => atLevel(request.level, offer, registry.hashLength));
    const sizeOf = (one: DiscoveredCapability) => bytesOf(DiscoveredCapabilitySchema, one);
    const { items: capabilities, more } = cutPage(shown, size, sizeOf);
    // A shorter page of the same search ends where the answer does.
    const { nextPageToken, truncated } = more
      ? await find(tx, search, { ...page, size: capabilities.length })
      : found;
    const tokens = tokensOf(capabilities.map(({ capability }) => capability as LevelledCapability));
    return create(DiscoverCapabilitiesResponseSchema, { capabilities, nextPageToken, tokens, truncated });
  });
}

/** @throws DeputeError AGENT_NOT_FOUND for a named agent that the viewer does not see, or that does not live */
async function checkNamed(
  tx: ReadTx,
  { agentId, health }: Search,
  { viewer, view }: OfferSight,
): Promise<void> {
  if (agentId === undefined) return;
  const agent = await findVisible(tx, agentId, viewer);
  const found = agent !== undefined && agent.status !== AgentStatus.REMOVED;
  if (!found || (health === AgentHealth.UNSPECIFIED && !isLiving(agent, view))) throw agentNotFound(agentId);
}

/** Members that are empty do not narrow the search. */
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

/** By id and agent. `served` in the position counts what the pages before held, for top_k. */
async function listed(
  tx: ReadTx,
  search: Search,
  { filters, token, size, sight, index }: PageRequest,
): Promise<Page> {
  const [served, id, agentId] = readPosition(token, filters, ["number", "string", "string"]) ?? [0, "", ""];
  const limit = Math.min(size, search.topK - served);
  if (limit <= 0) return { offers: [], nextPageToken: "", truncated: false };
  const list = { ...sight, after: { id, agentId }, limit: limit + 1 };
  const { offers, stoppedAt } =
    (await listIntersection(tx, index, search, list)) ?? (await listOffers(tx, search, list));
  const page = pageOf(offers, limit, served, search.topK, filters, (last) => [last.id, last.agentId]);
  if (stoppedAt === undefined || page.nextPageToken !== "") return page;
  // Few were found on a long way: the caller decides whether to go on.
  const position = [served + page.offers.length, stoppedAt.id, stoppedAt.agentId];
  return { ...page, nextPageToken: encodePageToken(position, filters) };
}

/** By how well the words of the query fit, then by id and agent. */
async function ranked(
  tx: ReadTx,
  search: Search,
  { filters, token, size, sight }: PageRequest,
): Promise<Page> {
  const position = readPosition(token, filters, ["number", "number", "string", "string"]);
  const served = position?.[0] ?? 0;
  const after = position && { score: position[1], id: position[2], agentId: position[3] };
  const limit = Math.min(size, search.topK - served);
  const words = queryWords(search.query);
  if (limit <= 0 || words.length === 0) return { offers: [], nextPageToken: "", truncated: false };
  const { found, truncated } = await searchOffers(tx, search, words);
  const candidates: Candidate[] = [];
  for (const { id, agentId, words: text } of found) {
    const candidate = { id, agentId, score: score(words, text) };
    if (!passes(candidate.score, search.threshold)) continue;
    if (after === undefined || compareRanked(candidate, after) > 0) candidates.push(candidate);
  }
  const best = await firstThatPass(tx, search, candidates.sort(compareRanked), sight, limit + 1);
  const page = pageOf(best, limit, served, search.topK, filters, (last) => [
    last.score,
    last.id,
    last.agentId,
  ]);
  return { ...page, truncated };
}

/** What is ranked, before it is known whether it is to be found. */
type Candidate = Ranked & CapabilityPosition;

/** The store is asked about the best first, and about no more than are needed. */
async function firstThatPass(
  tx: ReadTx,
  search: Search,
  candidates: readonly Candidate[],
  sight: OfferSight,
  limit: number,
): Promise<(Offer & { score: number })[]> {
  const passing: (Offer & { score: number })[] = [];
  for (let at = 0, size = limit; at < candidates.length && passing.length < limit; at += size) {
    const batch = candidates.slice(at, at + size);
    const scores = new Map(batch.map((each) => [`${each.agentId}/${each.id}`, each.score]));
    const offers = await offersAt(tx, search, batch, sight);
    const ranks = offers.map((offer) => ({
      ...offer,
      score: scores.get(`${offer.agentId}/${offer.id}`) ?? 0,
    }));
    passing.push(...ranks.sort(compareRanked));
  }
  return passing.slice(0, limit);
}

function pageOf<T extends Offer>(
  found: readonly T[],
  limit: number,
  served: number,
  topK: number,
  filters: PageFilters,
  place: (last: T) => (string | number)[],
): Page {
  const offers = found.slice(0, limit);
  const total = served + offers.length;
  const last = offers.at(-1);
  const isLast = last === undefined || found.length <= limit || total >= topK;
  const nextPageToken = isLast ? "" : encodePageToken([total, ...place(last)], filters);
  return { offers, nextPageToken, truncated: false };
}

function atLevel0(offer: Offer, hashLength: number): DiscoveredCapability {
  const ref = toRef({ id: offer.id, cat: offer.category, h: versionHash(offer.digest, hashLength) });
  return discovered(offer, { case: "ref", value: ref });
}

function atLevel(level: number, offer: FullOffer, hashLength: number): DiscoveredCapability {
  const full = withHash(offer.full, offer.digest, hashLength);
  return level === 1
    ? discovered(offer, { case: "summary", value: toSummary(full) })
    : discovered(offer, { case: "full", value: full });
}

function discovered(offer: Offer, capability: DiscoveredCapability["capability"]): DiscoveredCapability {
  const { agentId, agentVersion } = offer;
  return create(DiscoveredCapabilitySchema, { agentId, agentVersion, capability });
}
