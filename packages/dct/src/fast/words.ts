import { hasAddresses, type Pattern, type PatternReader, parsePattern } from "../glob.ts";
import { parsePrincipal } from "../principal.ts";
import { Memo } from "./memo.ts";

/**
 * Half the maximum number of entries in one Memo. An entry takes about 8 KB for a 256-character pattern, and
 * 0.3 KB for a key.
 */
const MEMO_SIZE = 1024;
/** Maximum length of a cached pattern, in characters. */
const MAX_REMEMBERED_CHARS = 256;

const ASCII = /^[\x20-\x7e]*$/;

const keys = new Memo<Uint8Array>(MEMO_SIZE);
const addressPatterns = new Memo<Pattern>(MEMO_SIZE);
const otherPatterns = new Memo<Pattern>(MEMO_SIZE);

/** Parses like parsePrincipal, with a cache. The returned bytes are shared, so callers must not write to them. */
export function rememberedKey(id: string): Uint8Array | undefined {
  const cachedKey = keys.get(id);
  if (cachedKey !== undefined) return cachedKey;
  const key = parsePrincipal(id);
  if (key !== undefined) keys.set(id, key);
  return key;
}

/**
 * Parses like parsePattern, with a cache of well-formed patterns. Returns undefined for a malformed pattern, and for a
 * text that is not ASCII.
 */
export function rememberedPattern(text: string, namespace: string): Pattern | undefined {
  // A namespace affects parsing in one way: it decides whether a text may begin with an origin. So two caches are
  // enough.
  const memo = hasAddresses(namespace) ? addressPatterns : otherPatterns;
  const cachedText = memo.get(text);
  if (cachedText !== undefined) return cachedText;
  if (!ASCII.test(text)) return undefined;
  const pattern = parsePattern(text, namespace);
  if ("problem" in pattern) return undefined;
  if (text.length <= MAX_REMEMBERED_CHARS) memo.set(text, pattern);
  return pattern;
}

/** A PatternReader that uses the cache. */
export const readRemembered: PatternReader = (text, namespace) =>
  rememberedPattern(text, namespace) ?? parsePattern(text, namespace);
