import { type JsonObject, type JsonValue, toJson } from "@bufbuild/protobuf";
import { PolicyCardSchema } from "@depute/contracts/delegateos/v0/principal_pb";
import type { Agent } from "@depute/contracts/depute/registry/v1/agent_pb";
import type { CapabilityFull } from "@depute/contracts/nekte/v1/nekte_pb";
import { canonicalBytes, canonicalJson, encodeBase64Url } from "@depute/core";
import type { Sha256Hex } from "./version-hash.ts";

/** The A2A version that the cards follow. */
const A2A_VERSION = "0.3.0";
/** The version in the card of an agent without a version. A2A requires a version. */
const NO_VERSION = "0";
const MODES = ["application/json"];

/**
 * Returns the unsigned A2A Agent Card of an agent. The card has the platform's URL, because callers reach agents
 * through the platform. The transport is `NEKTE`, which the platform serves for each agent; A2A allows any transport
 * name. (A2A 0.3 `AgentCard`; DelegateOS 14.2)
 *
 * @param publicUrl the platform's public URL, without a trailing slash
 */
export function agentCard(
  agent: Agent,
  capabilities: readonly CapabilityFull[],
  publicUrl: string,
): JsonObject {
  const { id, card: asp, organization } = agent;
  const endpoint = asp?.endpoints?.asp;
  const card: JsonObject = {
    protocolVersion: A2A_VERSION,
    name: agent.displayName || asp?.name || id,
    description: agent.description || asp?.description || "",
    url: `${publicUrl}/nekte/${encodeURIComponent(id)}`,
    preferredTransport: "NEKTE",
    version: agent.version || NO_VERSION,
    capabilities: { streaming: true, pushNotifications: false, stateTransitionHistory: true },
    defaultInputModes: MODES,
    defaultOutputModes: MODES,
    skills: capabilities.map((capability) => skill(capability, agent.tags)),
    delegateos: delegateos(agent),
  };
  if (organization !== "") card.provider = { organization, url: publicUrl };
  if (endpoint !== undefined) card.additionalInterfaces = [{ url: endpoint, transport: "ASP" }];
  return card;
}

function skill({ id, cat = "", desc = "" }: CapabilityFull, tags: readonly string[]): JsonObject {
  return { id, name: id, description: desc, tags: [...new Set([cat, ...tags])].filter((tag) => tag !== "") };
}

/**
 * Returns the card's `delegateos` member: the agent's principal and its delegation profile. Counts and prices are
 * JSON numbers, as in DelegateOS's published code.
 */
function delegateos({ principal, delegation }: Agent): JsonObject {
  const principalMembers: JsonObject = principal === "" ? {} : { principal };
  if (delegation === undefined) return principalMembers;
  const { delegationPolicy: policy } = delegation;
  const json = toJson(PolicyCardSchema, delegation) as JsonObject;
  if (policy === undefined) return { ...principalMembers, ...json };
  const delegationPolicy: JsonObject = {
    acceptsDelegation: policy.acceptsDelegation,
    maxChainDepth: Number(policy.maxChainDepth),
    requiredTrustScore: policy.requiredTrustScore,
    allowedNamespaces: policy.allowedNamespaces,
  };
  if (policy.costPerTaskMicrocents !== undefined) {
    delegationPolicy.costPerTaskMicrocents = Number(policy.costPerTaskMicrocents);
  }
  return { ...principalMembers, ...json, delegationPolicy };
}

/** A key that signs cards. */
export interface CardSigner {
  /** The key's thumbprint (RFC 7638). */
  readonly kid: string;
  sign(message: Uint8Array): Uint8Array;
}

/** A signed card in its canonical form, and the digest of the signed bytes. */
export interface SignedCard {
  readonly text: Uint8Array;
  readonly digest: string;
}

/** Signs a card: a JWS (RFC 7515) over the canonical JSON (RFC 8785) of the card without `signatures`. (A2A 8.4) */
export function signCard(card: JsonObject, signer: CardSigner, sha256: Sha256Hex): SignedCard {
  const utf8 = new TextEncoder();
  const payload = canonicalBytes(card);
  const header: JsonValue = { alg: "EdDSA", kid: signer.kid, typ: "JOSE" };
  const protectedHeader = encodeBase64Url(utf8.encode(canonicalJson(header)));
  const message = utf8.encode(`${protectedHeader}.${encodeBase64Url(payload)}`);
  const signature = encodeBase64Url(signer.sign(message));
  const signed = { ...card, signatures: [{ protected: protectedHeader, signature }] };
  return { text: canonicalBytes(signed), digest: sha256(payload) };
}
