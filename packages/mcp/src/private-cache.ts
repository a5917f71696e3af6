/** Makes caches keep an answer that depends on a token private to its caller (revision 2026-07-28, `cacheScope`). */
export function withPrivateCache(result: Record<string, unknown>): Record<string, unknown> {
  return result.cacheScope === undefined ? result : { ...result, cacheScope: "private" };
}
