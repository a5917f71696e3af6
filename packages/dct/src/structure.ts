import { idRule } from "@depute/core";
import { deny } from "./denial.ts";
import { parsePattern } from "./glob.ts";
import { MAX_ATTENUATIONS, MAX_CAPABILITIES, MAX_RESOURCE_CHARS } from "./limits.ts";
import { isName } from "./namespaces.ts";
import {
  array,
  count,
  id,
  isCount,
  object,
  oneOf,
  principal,
  type Shape,
  type ShapeRules,
  signature,
  that,
  time,
} from "./shape.ts";
import { parseTime } from "./time.ts";
import {
  type Attenuation,
  type Authority,
  type Capability,
  ROOT_DELEGATION_ID,
  type SignedJSONToken,
  SJT_FORMAT,
} from "./types.ts";

/** The reading where none is asked for: strict, unless the process is set to relax ids. */
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

/** A delegation's id; the id that stands for "no parent" is nobody's own. */
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

/** Throws TokenError unless `value` is an authority block (DelegateOS 3.1) that makes sense by itself. */
export function assertAuthority(value: unknown, rules: ShapeRules): asserts value is Authority {
  authority(value, "authority", rules);
  assertAuthoritySense(value as Authority);
}

/** Throws TokenError unless `value` is an attenuation block (DelegateOS 3.1). */
export function assertAttenuation(value: unknown, rules: ShapeRules): asserts value is Attenuation {
  attenuation(value, "attenuation", rules);
}

/**
 * Throws TokenError unless `value` has the structure of a token (DelegateOS 10.1 step 1). Signatures, narrowing and
 * time are not looked at.
 */
export function assertToken(value: unknown, rules: ShapeRules): asserts value is SignedJSONToken {
  token(value, "", rules);
  assertTokenSense(value as SignedJSONToken);
}

/** The part of assertToken that looks at members together; every member by itself is well formed. */
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
