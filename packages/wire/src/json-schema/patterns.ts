import { RE2JS } from "re2js";
import { translatePattern } from "./pattern-translation.ts";

/**
 * Thrown for a pattern that is invalid, is too long, cannot run in linear time, or has another meaning in RE2 than in
 * JavaScript.
 */
export class UnsupportedPattern extends Error {
  override readonly name = "UnsupportedPattern";
  readonly pattern: string;

  constructor(pattern: string, problem: string) {
    super(problem);
    this.pattern = pattern;
  }
}

/** Maximum length of a pattern in characters. */
const MAX_LENGTH = 1024;

/**
 * Compiles a JavaScript regular expression to an automaton whose running time is linear in the length of the text.
 * Semantics are those of `new RegExp(pattern, flags)` (DelegateOS 6.2). Look-around, back-references and repetition
 * beyond 1,000 are refused, because no linear-time engine supports them. Constructs whose meaning would silently
 * change are refused too. Flags i and s act as in JavaScript. With m only `\n` ends a line; y searches at the start
 * only. Flags g and d have no effect on a single search. Texts are read by code points, as with u in JavaScript.
 *
 * @throws UnsupportedPattern
 */
export function compilePattern(pattern: string, flags = ""): LinearPattern {
  if (pattern.length > MAX_LENGTH)
    throw new UnsupportedPattern(pattern, `longer than ${MAX_LENGTH} characters`);
  if (/[^dgimsuy]/.test(flags)) throw new UnsupportedPattern(pattern, "flags other than d, g, i, m, s, u, y");
  try {
    // Checks only JavaScript's syntax, because RegExp compiles nothing before the first search.
    new RegExp(pattern, flags);
  } catch {
    throw new UnsupportedPattern(pattern, "not a regular expression of JavaScript");
  }
  const translated = translatePattern(pattern, { dotAll: flags.includes("s"), unicode: flags.includes("u") });
  if ("problem" in translated) throw new UnsupportedPattern(pattern, translated.problem);
  let bits = 0;
  if (flags.includes("i")) bits |= RE2JS.CASE_INSENSITIVE;
  if (flags.includes("m")) bits |= RE2JS.MULTILINE;
  const source = flags.includes("y") ? `\\A(?:${translated.source})` : translated.source;
  try {
    return new LinearPattern(pattern, flags, RE2JS.compile(source, bits));
  } catch (error) {
    throw new UnsupportedPattern(pattern, `not supported in linear time: ${(error as Error).message}`);
  }
}

/** A compiled pattern in the form that Ajv expects. */
export class LinearPattern {
  readonly #text: string;
  readonly #engine: RE2JS;

  constructor(pattern: string, flags: string, engine: RE2JS) {
    this.#text = `/${pattern}/${flags}`;
    this.#engine = engine;
  }

  test(text: string): boolean {
    return this.#engine.test(text);
  }

  /**
   * Returns a text that is unique to the pattern and its flags. Ajv uses the text as the cache key of the
   * compiled expression.
   */
  toString(): string {
    return this.#text;
  }
}
