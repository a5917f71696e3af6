import { RE2JS } from "re2js";
import { translatePattern } from "./pattern-translation.ts";

/** A pattern that does not run in linear time, or does not mean here what it means in JavaScript. */
export class UnsupportedPattern extends Error {
  override readonly name = "UnsupportedPattern";
  readonly pattern: string;

  constructor(pattern: string, problem: string) {
    super(problem);
    this.pattern = pattern;
  }
}

/** Longest pattern, in characters. */
const MAX_LENGTH = 1024;

/**
 * A JavaScript regular expression as an automaton, which takes time linear in the text whatever the pattern.
 *
 * The text names `new RegExp(pattern, flags)` (DelegateOS 6.2). What no linear-time engine has is refused:
 * look-around, back-references, repetition beyond 1,000. So is what would silently mean something else. Flags: i and s
 * as in JavaScript; with m only `\n` ends a line; y searches at the beginning only; g and d change nothing about one
 * search. A text is read by code points, as JavaScript does with u.
 *
 * @throws UnsupportedPattern
 */
export function compilePattern(pattern: string, flags = ""): LinearPattern {
  if (pattern.length > MAX_LENGTH)
    throw new UnsupportedPattern(pattern, `longer than ${MAX_LENGTH} characters`);
  if (/[^dgimsuy]/.test(flags)) throw new UnsupportedPattern(pattern, "flags other than d, g, i, m, s, u, y");
  try {
    // Compiles nothing before the first search, so it only tells whether this is a pattern of JavaScript at all.
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

/** A compiled pattern, in the shape in which Ajv wants one. */
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

  /** Distinct for each pattern and flags: Ajv keeps one compiled expression of a schema for each such text. */
  toString(): string {
    return this.#text;
  }
}
