import type { ReadTx } from "@depute/store";
import type { AgentIndex, CapabilityPlace } from "../agent-index/agent-index.ts";
import { categoryKey } from "../rules/match.ts";
import {
  type CapabilityFilter,
  type CapabilityPosition,
  type Offer,
  type OfferList,
  type OfferSight,
  offersAt,
} from "./capabilities.ts";

/** Capabilities that the index proposes for one list, and how many times more with each batch: most pass, so one is mostly enough. */
const MAX_PROPOSED = 2_000;
const GROWTH = 8;

/**
 * As `listOffers`, for a filter of words: the index in memory tells who has them all, and the store the rest.
 *
 * The index may be a moment ahead of the transaction, and the list with it.
 *
 * @returns undefined for a filter without words, and for one that the store's own indexes answer as well
 */
export async function listIntersection(
  tx: ReadTx,
  index: AgentIndex,
  filter: CapabilityFilter,
  list: OfferSight & { after: CapabilityPosition; limit: number },
): Promise<OfferList | undefined> {
  const { keys = [], category, id, agentId } = filter;
  const words = keys.length + (category === undefined ? 0 : 1) + (id === undefined ? 0 : 1);
  if (agentId !== undefined || words === 0) return undefined;
  const query = { keys, id, category: category === undefined ? undefined : categoryKey(category) };
  // The rest of the filter: the index knows these.
  const { keys: _, category: __, id: ___, ...rest } = filter;
  const offers: Offer[] = [];
  let { after } = list;
  let proposed = 0;
  for (let size = list.limit; proposed < MAX_PROPOSED; size *= GROWTH) {
    const batch = Math.min(size, MAX_PROPOSED - proposed);
    const places: readonly CapabilityPlace[] | undefined = index.findCapabilities(query, after, batch);
    if (places === undefined) return undefined;
    offers.push(...(await offersAt(tx, rest, places, list)));
    const last = places.at(-1);
    if (last === undefined || places.length < batch || offers.length >= list.limit) {
      return { offers: offers.slice(0, list.limit), stoppedAt: undefined };
    }
    proposed += places.length;
    after = last;
  }
  return { offers, stoppedAt: after };
}
