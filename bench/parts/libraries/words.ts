import type * as own from "../../../packages/dct/src/fast/words.ts";
import { parsePattern } from "../../../packages/dct/src/glob.ts";
import { parsePrincipal } from "../../../packages/dct/src/principal.ts";

/** Parses keys and patterns without a cache. */
export const rememberedKey: typeof own.rememberedKey = parsePrincipal;
export const readRemembered: typeof own.readRemembered = parsePattern;
export const rememberedPattern: typeof own.rememberedPattern = (text, namespace) => {
  const pattern = /^[\x20-\x7e]*$/.test(text) ? parsePattern(text, namespace) : { problem: "" };
  return "problem" in pattern ? undefined : pattern;
};
