import { create } from "@bufbuild/protobuf";
import type { HandlerContext } from "@connectrpc/connect";
import {
  type DiscoverCapabilitiesRequest,
  type DiscoverCapabilitiesResponse,
  DiscoverCapabilitiesResponseSchema,
  type DiscoveredCapability,
  DiscoveredCapabilitySchema,
} from "@depute/contracts/depute/registry/v1/discovery_service_pb";
import { encodePageToken, type PageFilters, pageSize } from "@depute/core";
import type { ReadTx } from "@depute/store";
import { agentNotFound, identify, type RegistryContext } from "../context.ts";
import { readPosition } from "../page-position.ts";
import { isLiving } from "../rules/agent.ts";
import { toRef, toSummary, withHash } from "../rules/levels.ts";
import { BestOf, compareRanked, passes, queryWords, score } from "../rules/match.ts";
import { versionHash } from "../rules/version-hash.ts";
import { findAgent } from "../store/agents.ts";
import { type FullOffer, listOffers, loadFull, type Offer, searchOffers } from "../store/capabilities.ts";

/** What is looked for: the request with its defaults filled in. */
interface Search {
  readonly agentId: string | undefined;
  readonly id: string | undefined;
  readonly category: string | undefined;
  readonly query: string;
  readonly threshold: number;
  readonly topK: number;
}

/** A page, and the token of the next one or nothing. */
interface Page {
  readonly offers: readonly Offer[];
  readonly nextPageToken: string;
}

/** DiscoveryService.DiscoverCapabilities. */
export async function discoverCapabilities(
  registry: RegistryContext,
  request: DiscoverCapabilitiesRequest,
  context: HandlerContext,
): Promise<DiscoverCapabilitiesResponse> {
  await identify(registry, context);
  const search = readSearch(request);
  const filters: PageFilters = { list: "capabilities", ...search };
  const size = pageSize(request.pageSize);
  const now = registry.clock.now();
  return registry.store.read(async (tx) => {
    if (search.agentId !== undefined) {
      const agent = await findAgent(tx, search.agentId);
      if (agent === undefined || !isLiving(agent, now)) throw agentNotFound(search.agentId);
    }
    const find = search.query === "" ? listed : ranked;
    const { offers, nextPageToken } = await find(tx, search, filters, request.pageToken, size, now);
    const capabilities =
      request.level === 0
        ? offers.map((offer) => atLevel0(offer, registry.hashLength))
        : (await loadFull(tx, offers)).map((offer) => atLevel(request.level, offer, registry.hashLength));
    return create(DiscoverCapabilitiesResponseSchema, { capabilities, nextPageToken });
  });
}

/** Members that are empty do not narrow the search. */
function readSearch({ filter, agentId }: DiscoverCapabilitiesRequest): Search {
  return {
    agentId: agentId || undefined,
    id: filter?.id || undefined,
    category: filter?.category || undefined,
    query: filter?.query ?? "",
    threshold: filter?.threshold ?? 0,
    topK: filter?.topK ?? Number.MAX_SAFE_INTEGER,
  };
}

/** By id and agent. `served` in the position counts what the pages before held, for top_k. */
async function listed(
  tx: ReadTx,
  search: Search,
  filters: PageFilters,
  token: string,
  size: number,
  now: number,
): Promise<Page> {
  const position = readPosition(token, filters, ["number", "string", "string"]);
  const [served, id, agentId] = position ?? [0, "", ""];
  const limit = Math.min(size, search.topK - served);
  if (limit <= 0) return { offers: [], nextPageToken: "" };
  const found = await listOffers(tx, search, { after: { id, agentId }, limit: limit + 1, now });
  return pageOf(found, limit, served, search.topK, filters, (last) => [last.id, last.agentId]);
}

/** By how well the words of the query fit, then by id and agent. */
async function ranked(
  tx: ReadTx,
  search: Search,
  filters: PageFilters,
  token: string,
  size: number,
  now: number,
): Promise<Page> {
  const position = readPosition(token, filters, ["number", "number", "string", "string"]);
  const served = position?.[0] ?? 0;
  const after = position && { score: position[1], id: position[2], agentId: position[3] };
  const limit = Math.min(size, search.topK - served);
  const words = queryWords(search.query);
  if (limit <= 0 || words.length === 0) return { offers: [], nextPageToken: "" };
  const best = new BestOf<Offer & { score: number }>(limit + 1);
  await searchOffers(tx, search, words, now, (offer, text) => {
    const candidate = { ...offer, score: score(words, text) };
    if (!passes(candidate.score, search.threshold)) return;
    if (after === undefined || compareRanked(candidate, after) > 0) best.offer(candidate);
  });
  return pageOf(best.items, limit, served, search.topK, filters, (last) => [
    last.score,
    last.id,
    last.agentId,
  ]);
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
  return { offers, nextPageToken: isLast ? "" : encodePageToken([total, ...place(last)], filters) };
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
