import type {
  Attenuation,
  Authority,
  Capability,
  SerializedDCT,
  SignedJSONToken,
  TokenSignature,
} from "@depute/dct";
import * as ed from "@noble/ed25519";
import { sha512 } from "@noble/hashes/sha2.js";
import { blake2b } from "blakejs";
import canonicalize from "canonicalize";

ed.hashes.sha512 ??= (message) => Uint8Array.from(sha512(message));

const utf8 = new TextEncoder();

interface LiteralContext {
  rootPublicKey: string;
  revocations: { isRevoked(revocationId: string): boolean };
  now: string;
  spentMicrocents: number;
  namespace: string;
  operation: string;
  resource: string;
}

/**
 * Implements DelegateOS 10.1 exactly as the text states it, with the libraries that the text names. The comparison uses
 * this function as its reference. Where the text leaves a choice, the function is fast (a Set, synchronous calls). It
 * has the specification's security holes.
 */
export function verifyLiterally(dct: SerializedDCT, ctx: LiteralContext): object {
  // Step 1 of DelegateOS 10.1.
  let token: SignedJSONToken;
  try {
    token = JSON.parse(Buffer.from(dct.token, "base64url").toString("utf8"));
  } catch {
    return { type: "malformed_token" };
  }
  const { authority, attenuations, signatures } = token;
  if (token.format !== "delegateos-sjt-v1" || !authority || !attenuations || !signatures) {
    return { type: "malformed_token" };
  }
  // Step 2 of DelegateOS 10.1.
  for (const block of [authority, ...attenuations]) {
    if (ctx.revocations.isRevoked(Buffer.from(hashOf(block)).toString("base64url")))
      return { type: "revoked" };
  }
  // Step 3 of DelegateOS 10.1.
  if (authority.issuer !== ctx.rootPublicKey) return { type: "invalid_signature" };
  if (!isSigned({ authority }, authority.issuer, signatures[0]?.signature ?? "")) {
    return { type: "invalid_signature" };
  }
  for (const [i, { attenuator }] of attenuations.entries()) {
    const payload = { authority, attenuations: attenuations.slice(0, i + 1) };
    if (!isSigned(payload, attenuator, signatures[i + 1]?.signature ?? ""))
      return { type: "invalid_signature" };
  }
  // Step 4 of DelegateOS 10.1.
  let capabilities = authority.capabilities;
  let budget = authority.maxBudgetMicrocents;
  let expiry = authority.expiresAt;
  let depth = authority.maxChainDepth;
  let delegatee = authority.delegatee;
  for (const block of attenuations) {
    if (block.attenuator !== delegatee)
      return { type: "attenuation_violation", detail: "attenuator mismatch" };
    if (block.allowedCapabilities) {
      for (const child of block.allowedCapabilities) {
        if (!capabilities.some((parent) => isSubset(child, parent))) {
          return { type: "attenuation_violation", detail: "capability expansion" };
        }
      }
      capabilities = block.allowedCapabilities;
    }
    if (block.maxBudgetMicrocents !== undefined) {
      if (block.maxBudgetMicrocents > budget) return { type: "attenuation_violation", detail: "budget" };
      budget = block.maxBudgetMicrocents;
    }
    if (block.expiresAt !== undefined) {
      if (block.expiresAt > expiry) return { type: "attenuation_violation", detail: "expiry" };
      expiry = block.expiresAt;
    }
    if (block.maxChainDepth !== undefined) {
      if (block.maxChainDepth >= depth) return { type: "attenuation_violation", detail: "depth" };
      depth = block.maxChainDepth;
    }
    delegatee = block.delegatee;
  }
  // Steps 5 to 7 of DelegateOS 10.1.
  if (ctx.now > expiry) return { type: "expired" };
  if (ctx.spentMicrocents >= budget) return { type: "budget_exceeded" };
  const isGranted = capabilities.some(({ namespace, action, resource }) => {
    return namespace === ctx.namespace && action === ctx.operation && matches(resource, ctx.resource);
  });
  if (!isGranted) return { type: "capability_not_granted" };
  // Step 8 of DelegateOS 10.1.
  return {
    capabilities,
    remainingBudgetMicrocents: budget - ctx.spentMicrocents,
    chainDepth: authority.chainDepth + attenuations.length,
    maxChainDepth: depth,
    contractId: (attenuations.at(-1) ?? authority).contractId,
    delegationId: (attenuations.at(-1) ?? authority).delegationId,
  };
}

/** Signs an authority block as DelegateOS 3.3 states it. */
export function mintLiterally(authority: Authority, seed: Uint8Array): SerializedDCT {
  const format = "delegateos-sjt-v1";
  return serialised({
    format,
    authority,
    attenuations: [],
    signatures: [signed({ authority }, authority.issuer, seed, "authority")],
  });
}

/** Adds a block as DelegateOS 3.4 states it. The last signature covers all blocks. */
export function attenuateLiterally(
  { authority, attenuations, signatures }: SignedJSONToken,
  block: Attenuation,
  seed: Uint8Array,
): SerializedDCT {
  const last = attenuations.at(-1);
  const capabilities = last?.allowedCapabilities ?? authority.capabilities;
  for (const child of block.allowedCapabilities ?? []) {
    if (!capabilities.some((parent) => isSubset(child, parent))) throw new Error("capability expansion");
  }
  const all = [...attenuations, block];
  return serialised({
    format: "delegateos-sjt-v1",
    authority,
    attenuations: all,
    signatures: [
      ...signatures,
      signed({ authority, attenuations: all }, block.attenuator, seed, attenuations.length),
    ],
  });
}

function signed(
  payload: object,
  signer: string,
  seed: Uint8Array,
  covers: TokenSignature["covers"],
): TokenSignature {
  return { signer, signature: Buffer.from(ed.sign(hashOf(payload), seed)).toString("base64url"), covers };
}

function serialised(token: SignedJSONToken): SerializedDCT {
  const text = Buffer.from(canonicalize(token) ?? "").toString("base64url");
  return { token: text, format: "delegateos-sjt-v1" };
}

function hashOf(value: object): Uint8Array {
  return blake2b(utf8.encode(canonicalize(value)), undefined, 32);
}

function isSigned(payload: object, signer: string, signature: string): boolean {
  const key = Buffer.from(signer, "base64url");
  return ed.verify(Buffer.from(signature, "base64url"), hashOf(payload), key);
}

/**
 * Whether a capability is a subset of its parent's by the rule of v0.1. The resource is identical to the parent's, or
 * the parent's is `*`. If the parent's ends with `/**`, the resource may begin with the part before `**`.
 */
function isSubset(child: Capability, parent: Capability): boolean {
  if (child.namespace !== parent.namespace || child.action !== parent.action) return false;
  if (child.resource === parent.resource || parent.resource === "*") return true;
  return parent.resource.endsWith("/**") && child.resource.startsWith(parent.resource.slice(0, -2));
}

function matches(pattern: string, resource: string): boolean {
  return pattern === "*" || matchSegments(pattern.split("/"), resource.split("/"));
}

function matchSegments([first, ...pattern]: string[], resource: string[]): boolean {
  if (first === undefined) return resource.length === 0;
  if (first === "**") {
    return resource.some((_, i) => matchSegments(pattern, resource.slice(i))) || matchSegments(pattern, []);
  }
  return (first === "*" || first === resource[0]) && matchSegments(pattern, resource.slice(1));
}
