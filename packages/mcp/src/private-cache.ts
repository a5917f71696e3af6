/**
 * Marks a result that has a `cacheScope` (revision 2026-07-28) as private, because it depends on the caller's token.
 * Caches then do not return the result to other callers.
 */
export function withPrivateCache(result: Record<string, unknown>): Record<string, unknown> {
  return result.cacheScope === undefined ? result : { ...result, cacheScope: "private" };
}
