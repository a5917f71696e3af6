import { isObject } from "@depute/core";
import { MAX_DETAILS } from "./check-result.ts";
import { MAX_FIELD_PATH } from "./field-path.ts";

/** A fault in the parameters of a check (DelegateOS 6.2). */
export interface ParamsFault {
  /** The faulty member, for example `fields[2]`; empty if no single member is at fault. */
  member: string;
  problem: string;
}
/**
 * Validates the parameters of a check, when a contract is created and before the check runs. Returns a fault; undefined
 * if the parameters are valid. The rules of DelegateOS's checks also refuse unknown members, because a misspelt bound
 * such as `mni` would have no effect.
 */
export type ParamsRule = (params: unknown) => ParamsFault | undefined;

/** Maximum length of a pattern in characters. */
export const MAX_PATTERN = 1024;
/** Maximum number of paths in one `field_exists` check. */
export const MAX_FIELDS = 256;

type MemberRule = (value: unknown) => string | undefined;
interface MemberSpec {
  rule: MemberRule;
  needed?: boolean;
}

export const regexMatchParams: ParamsRule = members({
  pattern: { rule: (v) => text(v, 1, MAX_PATTERN), needed: true },
  flags: { rule: (v) => text(v, 0, 8) },
  field: { rule: path },
});

export const jsonSchemaParams: ParamsRule = members({
  schema: {
    rule: (v) => (isObject(v) || typeof v === "boolean" ? undefined : "must be an object or a boolean"),
    needed: true,
  },
});

export const lengthParams: ParamsRule = (params) => {
  const fault = lengthMembers(params);
  if (fault !== undefined) return fault;
  const { min, max } = params as { min?: number; max?: number };
  if (min !== undefined && max !== undefined && min > max) {
    return { member: "min", problem: "is greater than max, so no output could pass" };
  }
  return undefined;
};

const lengthMembers = members({ min: { rule: count }, max: { rule: count }, field: { rule: path } });

export const fieldExistsParams: ParamsRule = (params) => {
  const fault = members({ fields: { rule: fieldList, needed: true } })(params);
  if (fault !== undefined) return fault;
  const { fields } = params as { fields: unknown[] };
  const bad = fields.findIndex((field) => path(field) !== undefined);
  return bad < 0 ? undefined : { member: `fields[${bad}]`, problem: path(fields[bad]) ?? "" };
};

export const exitCodeParams: ParamsRule = members({
  expected: { rule: (v) => (isInt32(v) ? undefined : "must be a whole number of 32 bits"), needed: true },
});

export const outputEqualsParams: ParamsRule = members({ expected: { rule: () => undefined, needed: true } });

/**
 * Validates a contract's expectedResult (DelegateOS 6.1). Refuses a value that no check can return, because then no
 * output could pass.
 */
export const expectedResultParams: ParamsRule = members({
  passed: { rule: (v) => (typeof v === "boolean" ? undefined : "must be true or false"), needed: true },
  score: { rule: (v) => (typeof v === "number" && v >= 0 && v <= 1 ? undefined : "must be 0 to 1") },
  details: { rule: (v) => text(v, 0, MAX_DETAILS) },
});

function members(spec: Record<string, MemberSpec>): ParamsRule {
  return (params) => {
    if (!isObject(params)) return { member: "", problem: "must be an object" };
    for (const name of Object.keys(params)) {
      if (!Object.hasOwn(spec, name))
        return { member: name.slice(0, 64), problem: "is an unknown parameter" };
    }
    for (const [name, { rule, needed }] of Object.entries(spec)) {
      const value = Object.hasOwn(params, name) ? params[name] : undefined;
      if (value === undefined) {
        if (needed === true) return { member: name, problem: "is required" };
        continue;
      }
      const problem = rule(value);
      if (problem !== undefined) return { member: name, problem };
    }
    return undefined;
  };
}

function isInt32(value: unknown): boolean {
  return typeof value === "number" && (value | 0) === value;
}

function text(value: unknown, min: number, max: number): string | undefined {
  if (typeof value !== "string") return "must be a string";
  return value.length >= min && value.length <= max ? undefined : `must have ${min} to ${max} characters`;
}

function path(value: unknown): string | undefined {
  const problem = text(value, 1, MAX_FIELD_PATH);
  if (problem !== undefined) return problem;
  return (value as string).split(".").includes("") ? "must be a dot path without empty names" : undefined;
}

function count(value: unknown): string | undefined {
  return Number.isSafeInteger(value) && (value as number) >= 0
    ? undefined
    : "must be a whole number, 0 or more";
}

function fieldList(value: unknown): string | undefined {
  if (!Array.isArray(value)) return "must be a list";
  // Requires at least one path. With an empty list, every output would pass.
  return value.length >= 1 && value.length <= MAX_FIELDS ? undefined : `must have 1 to ${MAX_FIELDS} paths`;
}
