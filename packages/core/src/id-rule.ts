/**
 * How ids of contracts, delegations and attestations are read in this process. strict: the prefix and 12 hexadecimal
 * digits, as DelegateOS has them (5.1, 7.1, 8.1). relaxed: any short name, as in published examples.
 */
export type IdRule = "strict" | "relaxed";

/** A short name: 1 to 128 characters. */
export const RELAXED_ID = /^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}$/;

const OPTIONAL_RELAXED_ID = /^([A-Za-z0-9][A-Za-z0-9._:-]{0,127})?$/;
/** A contract's pattern of one id, which may be absent. */
const PATTERN = /^\^(\()?(ct|del|att)_\[0-9a-f\]\{12\}(\)\?)?\$$/;

let rule: IdRule = "strict";

/** Sets the rule of this process; what starts the process calls it with the setting. */
export function setIdRule(next: IdRule): void {
  rule = next;
}

/** The rule of this process. */
export function idRule(): IdRule {
  return rule;
}

/** What stands in for a contract's pattern under the present rule; undefined where the pattern itself holds. */
export function relaxedPattern(pattern: string): RegExp | undefined {
  if (rule === "strict" || !PATTERN.test(pattern)) return undefined;
  return pattern.startsWith("^(") ? OPTIONAL_RELAXED_ID : RELAXED_ID;
}
