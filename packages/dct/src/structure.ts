import { decodeBase64Url, idRule, isObject } from "@depute/core";
import { type DenialType, deny } from "./denial.ts";
import { SIGNATURE_BYTES } from "./engine/encodings.ts";
import { parsePattern } from "./glob.ts";
import { MAX_ATTENUATIONS, MAX_CAPABILITIES, MAX_RESOURCE_CHARS } from "./limits.ts";
import { type IdKind, type IdRule, isId, isName } from "./names.ts";
import { isPrincipalId } from "./principal.ts";
import { parseTime } from "./time.ts";
import {
  type Attenuation,
  type Authority,
  type Capability,
  ROOT_DELEGATION_ID,
  type SignedJSONToken,
  SJT_FORMAT,
} from "./types.ts";

/**
 * Checks a JSON value. Returns if the value fits the shape; otherwise throws TokenError with the path and the fault.
 * Paths consist of this package's own names, so an error never repeats the sender's text.
 */
export type Shape = (value: unknown, path: string, rules: ShapeRules) => void;

export interface ShapeRules {
  readonly ids: IdRule;
}

/**
 * Makes a shape for an object with exactly these members. The shape refuses a missing member, an unknown member
 * and null.
 */
export function object(required: Record<string, Shape>, optional: Record<string, Shape> = {}): Shape {
  const members = new Map([...Object.entries(required), ...Object.entries(optional)]);
  const needed = Object.keys(required);
  return (value, path, rules) => {
    if (typeof value !== "object" || value === null || Array.isArray(value)) malformed(path, "not an object");
    for (const key of Object.keys(value)) if (!members.has(key)) malformed(path, "unknown member");
    for (const key of needed) if (!Object.hasOwn(value, key)) malformed(join(path, key), "missing");
    for (const [key, shape] of members) {
      if (Object.hasOwn(value, key)) shape((value as Record<string, unknown>)[key], join(path, key), rules);
    }
  };
}

/** Makes a shape for an array of at most `max` items. A longer array is denied with the type `tooLong`. */
export function array(item: Shape, max: number, tooLong: DenialType = "malformed_token"): Shape {
  return (value, path, rules) => {
    if (!Array.isArray(value)) malformed(path, "not an array");
    if (value.length > max) deny(tooLong, `${path}: more than ${max} items`);
    for (const [i, member] of value.entries()) item(member, `${path}[${i}]`, rules);
  };
}

/** Makes a shape for the values that `accepts` accepts. */
export function that(problem: string, accepts: (value: unknown) => boolean): Shape {
  return (value, path) => {
    if (!accepts(value)) malformed(path, problem);
  };
}

/** Makes a shape for a text of at most `max` UTF-16 code units, without lone surrogates. */
export function text(max: number): Shape {
  return that(`not a text of at most ${max} characters`, (value) => {
    return typeof value === "string" && value.length <= max && value.isWellFormed();
  });
}

/** Makes a shape for one of a fixed list of words. */
export function oneOf(...words: readonly string[]): Shape {
  return that(`not ${words.join(" or ")}`, (value) => typeof value === "string" && words.includes(value));
}

/** Makes a shape for an identifier of a kind, by the id rule in `rules`. */
export function id(kind: IdKind): Shape {
  return (value, path, rules) => {
    if (!isId(kind, value, rules.ids)) malformed(path, `not a ${kind}_ identifier`);
  };
}

export const principal = that("not a principal", isPrincipalId);

/** An integer from 0 to 2^53 - 1. JSON readers agree only on these integers. */
export const count = that("not an integer from 0 to 2^53-1", isCount);

export const time = that("not a time YYYY-MM-DDTHH:MM:SS(.sss)Z", (value) => parseTime(value) !== undefined);

export const signature = that("not a signature", (value) => {
  return (
    typeof value === "string" && value.length === 86 && decodeBase64Url(value)?.length === SIGNATURE_BYTES
  );
});

export const digest = that("not a digest", (value) => {
  return typeof value === "string" && value.length === 43 && decodeBase64Url(value) !== undefined;
});

export const bool = that("not a boolean", (value) => typeof value === "boolean");

/** Any object. Its members are not checked. */
export const anyObject = that("not an object", isObject);

/** Whether a value is an integer from 0 to 2^53 - 1. */
export function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}

function malformed(path: string, problem: string): never {
  deny("malformed_token", path === "" ? problem : `${path}: ${problem}`);
}

function join(path: string, key: string): string {
  return path === "" ? key : `${path}.${key}`;
}

/**
 * The rules for callers that pass no rules. Ids are strict, unless the operator has configured relaxed ids for this
 * process.
 */
export const DEFAULT_RULES: ShapeRules = {
  get ids() {
    return idRule();
  },
};

const name = that("not a name of a-z 0-9 _ . : -", isName);

const members = object({ namespace: name, action: name, resource: that("not text", isText) });

const capability: Shape = (value, path, rules) => {
  members(value, path, rules);
  const { namespace, resource } = value as Capability;
  if (resource.length > MAX_RESOURCE_CHARS) deny("token_too_large", `${path}.resource`);
  const pattern = parsePattern(resource, namespace);
  if ("problem" in pattern) deny("invalid_resource", `${path}.resource: ${pattern.problem}`);
};

const capabilities = array(capability, MAX_CAPABILITIES, "token_too_large");

/** The id of a delegation. ROOT_DELEGATION_ID is refused, because it means "no parent". */
const delegationId: Shape = (value, path, rules) => {
  id("del")(value, path, rules);
  if (value === ROOT_DELEGATION_ID) deny("malformed_token", `${path}: reserved for the parent of a root`);
};

const authority = object({
  issuer: principal,
  delegatee: principal,
  capabilities,
  contractId: id("ct"),
  delegationId,
  parentDelegationId: id("del"),
  chainDepth: count,
  maxChainDepth: count,
  maxBudgetMicrocents: count,
  expiresAt: time,
  issuedAt: time,
});

const attenuation = object(
  { attenuator: principal, delegatee: principal, delegationId, contractId: id("ct") },
  { allowedCapabilities: capabilities, maxBudgetMicrocents: count, expiresAt: time, maxChainDepth: count },
);

const token = object({
  format: oneOf(SJT_FORMAT),
  authority,
  attenuations: array(attenuation, MAX_ATTENUATIONS, "token_too_large"),
  signatures: array(
    object({
      signer: principal,
      signature,
      covers: that("neither authority nor an index", (value) => value === "authority" || isCount(value)),
    }),
    MAX_ATTENUATIONS + 1,
    "token_too_large",
  ),
});

/**
 * Throws TokenError unless `value` is an authority block (DelegateOS 3.1): its depth is 0 exactly for a root, it is
 * not its own parent, and it expires after its issue.
 */
export function assertAuthority(value: unknown, rules: ShapeRules): asserts value is Authority {
  authority(value, "authority", rules);
  assertAuthoritySense(value as Authority);
}

/** Throws TokenError unless `value` has the structure of an attenuation block (DelegateOS 3.1). */
export function assertAttenuation(value: unknown, rules: ShapeRules): asserts value is Attenuation {
  attenuation(value, "attenuation", rules);
}

/**
 * Throws TokenError unless `value` has the structure of a token (DelegateOS 10.1 step 1). Signatures,
 * attenuation and times are not checked.
 */
export function assertToken(value: unknown, rules: ShapeRules): asserts value is SignedJSONToken {
  token(value, "", rules);
  assertTokenSense(value as SignedJSONToken);
}

/**
 * Checks the rules of assertToken that concern several members together. The caller must have checked each single
 * member.
 */
export function assertTokenSense({ authority, attenuations }: SignedJSONToken): void {
  assertAuthoritySense(authority);
  const seen = new Set([authority.parentDelegationId, authority.delegationId]);
  for (const [i, block] of attenuations.entries()) {
    if (seen.has(block.delegationId))
      deny("malformed_token", `attenuations[${i}].delegationId: twice in one chain`);
    seen.add(block.delegationId);
  }
}

function assertAuthoritySense(authority: Authority): void {
  const isRoot = authority.parentDelegationId === ROOT_DELEGATION_ID;
  if (isRoot !== (authority.chainDepth === 0)) {
    deny("malformed_token", "authority.chainDepth: 0 for a root, and for a root only");
  }
  if (authority.parentDelegationId === authority.delegationId) {
    deny("malformed_token", "authority.delegationId: its own parent");
  }
  if ((parseTime(authority.expiresAt) ?? 0) <= (parseTime(authority.issuedAt) ?? 0)) {
    deny("malformed_token", "authority.expiresAt: not after issuedAt");
  }
}

function isText(value: unknown): boolean {
  return typeof value === "string";
}
