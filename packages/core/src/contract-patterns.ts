/**
 * The accepted form of the ids of contracts, delegations and attestations. strict: the prefix and 12 hexadecimal digits
 * (DelegateOS 5.1, 7.1, 8.1). relaxed: any short name, as in published examples.
 */
export type IdRule = "strict" | "relaxed";

/** A short name of 1 to 128 characters. */
export const RELAXED_ID = /^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}$/;

const OPTIONAL_RELAXED_ID = /^([A-Za-z0-9][A-Za-z0-9._:-]{0,127})?$/;
/**
 * Matches a protovalidate pattern that stands for one strict id, required or optional. The rule `relaxed` replaces
 * these patterns.
 */
const PATTERN = /^\^(\()?(ct|del|att)_\[0-9a-f\]\{12\}(\)\?)?\$$/;

let rule: IdRule = "strict";

/** Sets the id rule of this process. The host calls this function once, at the start, with the operator's setting. */
export function setIdRule(next: IdRule): void {
  rule = next;
}

/** Returns the id rule of this process. */
export function idRule(): IdRule {
  return rule;
}

/**
 * Returns the replacement of a protobuf contract's pattern under the current id rule; undefined if the pattern itself
 * applies.
 */
export function relaxedPattern(pattern: string): RegExp | undefined {
  if (rule === "strict" || !PATTERN.test(pattern)) return undefined;
  return pattern.startsWith("^(") ? OPTIONAL_RELAXED_ID : RELAXED_ID;
}

/**
 * The compiled patterns, by their texts. The map cannot grow without bound, because the patterns are constants of the
 * protobuf contracts.
 */
const regexes = new Map<string, RegExp>();

/**
 * Compiles a pattern of a protobuf contract. A linter ensures that these patterns are valid RE2 and take linear time.
 * Therefore RegExp can replace protovalidate's RE2 engine, at half the cost.
 *
 * @throws SyntaxError for a pattern that RegExp does not accept
 */
export function regexOf(pattern: string): RegExp {
  let regex = regexes.get(pattern);
  if (regex === undefined) {
    regex = new RegExp(pattern, "u");
    regexes.set(pattern, regex);
  }
  return regex;
}

/**
 * Whether a text matches a pattern of a protobuf contract. Throws SyntaxError for a pattern that RegExp does not
 * accept.
 */
export function regexMatch(pattern: string, against: string): boolean {
  return (relaxedPattern(pattern) ?? regexOf(pattern)).test(against);
}
