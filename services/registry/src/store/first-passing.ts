import type { Place, PlaceList } from "./key-walk.ts";

/**
 * Maximum number of places that one list reads (MAX_LOOKED_UP), and the factor by which each batch is larger than the
 * previous batch (GROWTH). The first batch usually suffices, because most of its items pass the check.
 */
const MAX_LOOKED_UP = 2_000;
const GROWTH = 8;

/**
 * The items of a list. `stoppedAt` is the last place that the list read if the list stopped early; otherwise undefined.
 */
export interface Passing<T> {
  readonly items: readonly T[];
  readonly stoppedAt: Place | undefined;
}

/**
 * Returns at most `limit` items after `after` that pass a check, in the order of their places. Stops early after
 * MAX_LOOKED_UP places.
 *
 * @param find reads the next places, up to a limit
 * @param load reads those items at the places that pass
 */
export async function firstPassing<T>(
  after: Place,
  limit: number,
  find: (after: Place, limit: number) => Promise<PlaceList>,
  load: (places: readonly Place[]) => Promise<readonly T[]>,
): Promise<Passing<T>> {
  const items: T[] = [];
  let from = after;
  let lookedUp = 0;
  for (let size = limit; lookedUp < MAX_LOOKED_UP; size *= GROWTH) {
    const batch = Math.min(size, MAX_LOOKED_UP - lookedUp);
    const { places, stoppedAt } = await find(from, batch);
    if (places.length > 0) items.push(...(await load(places)));
    if (items.length >= limit) return { items: items.slice(0, limit), stoppedAt: undefined };
    if (stoppedAt !== undefined) return { items, stoppedAt };
    const last = places.at(-1);
    if (last === undefined || places.length < batch) return { items, stoppedAt: undefined };
    lookedUp += places.length;
    from = last;
  }
  return { items, stoppedAt: from };
}
