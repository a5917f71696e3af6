import { hasAddresses, type Pattern, type PatternReader, parsePattern } from "../glob.ts";
import { parsePrincipal } from "../principal.ts";
import { Memo } from "./memo.ts";

/** Answers that one Memo keeps at most, twice; a pattern of 256 characters takes some 8 KB, a key 0.3 KB. */
const MEMO_SIZE = 1024;
/** Longest pattern that is remembered, in characters. */
const MAX_REMEMBERED_CHARS = 256;

const ASCII = /^[\x20-\x7e]*$/;

const keys = new Memo<Uint8Array>(MEMO_SIZE);
const addressPatterns = new Memo<Pattern>(MEMO_SIZE);
const otherPatterns = new Memo<Pattern>(MEMO_SIZE);

/** As parsePrincipal, and remembers. The bytes are shared: nobody may write to them. */
export function rememberedKey(id: string): Uint8Array | undefined {
  const known = keys.get(id);
  if (known !== undefined) return known;
  const key = parsePrincipal(id);
  if (key !== undefined) keys.set(id, key);
  return key;
}

/** As parsePattern, and remembers what is well formed; undefined also for a text that is not ASCII. */
export function rememberedPattern(text: string, namespace: string): Pattern | undefined {
  // The namespace decides one thing alone: whether a text may begin with an origin.
  const memo = hasAddresses(namespace) ? addressPatterns : otherPatterns;
  const known = memo.get(text);
  if (known !== undefined) return known;
  if (!ASCII.test(text)) return undefined;
  const pattern = parsePattern(text, namespace);
  if ("problem" in pattern) return undefined;
  if (text.length <= MAX_REMEMBERED_CHARS) memo.set(text, pattern);
  return pattern;
}

/** A PatternReader that remembers. */
export const readRemembered: PatternReader = (text, namespace) =>
  rememberedPattern(text, namespace) ?? parsePattern(text, namespace);
