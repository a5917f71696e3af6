import { relaxedPattern } from "./id-rule.ts";

/** Bounded by the number of patterns in the contracts. */
const regexes = new Map<string, RegExp>();

/**
 * A pattern of a contract. The patterns are ours: linted as RE2 and linear, so the platform's RegExp, compiled once,
 * stands in for protovalidate's RE2 engine at half of the cost. Throws SyntaxError for a pattern that is no RegExp.
 */
export function regexOf(pattern: string): RegExp {
  let regex = regexes.get(pattern);
  if (regex === undefined) {
    regex = new RegExp(pattern, "u");
    regexes.set(pattern, regex);
  }
  return regex;
}

/** Whether a text matches a pattern of a contract. Throws SyntaxError for a pattern that is no RegExp. */
export function regexMatch(pattern: string, against: string): boolean {
  return (relaxedPattern(pattern) ?? regexOf(pattern)).test(against);
}
