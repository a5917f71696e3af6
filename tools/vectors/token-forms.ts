import { decodeBase64Url } from "@depute/core";
import { parseToken } from "@depute/dct";
import { forge, forged } from "./forge.ts";
import { encodeJson, encodeText, principalOf, type VectorCase } from "./shared.ts";
import { CONTRACT, ROOT_TOKEN, textOf } from "./token-chain.ts";

const { authority } = ROOT_TOKEN;
const TEXT = textOf(ROOT_TOKEN);
const JSON_TEXT = new TextDecoder().decode(decodeBase64Url(TEXT));
const [FIRST, ...MORE] = authority.capabilities;

/** Texts that are refused before any signature is verified. Every block that has a signature has a valid one. */
const FORMS: readonly (readonly [name: string, token: string])[] = [
  ["an empty text", ""],
  ["padding", `${TEXT}=`],
  ["white space", `${TEXT} `],
  ["bytes that are not UTF-8", "_w"],
  ["a byte order mark", encodeText(`\ufeff${JSON_TEXT}`)],
  ["not JSON", encodeText("{")],
  ["an array", encodeText("[]")],
  ["white space in the JSON", encodeText(` ${JSON_TEXT}`)],
  [
    "members out of order",
    encodeText(JSON_TEXT.replace('"action":"read","namespace":"docs"', '"namespace":"docs","action":"read"')),
  ],
  ["a repeated member", encodeText(JSON_TEXT.replace('"chainDepth":0', '"chainDepth":0,"chainDepth":0'))],
  ["a needless escape", encodeText(JSON_TEXT.replace("docs", "\\u0064ocs"))],
  [
    "a number with an exponent",
    encodeText(JSON_TEXT.replace('"maxBudgetMicrocents":1000000', '"maxBudgetMicrocents":1e6')),
  ],
  ["another format", encodeJson({ ...ROOT_TOKEN, format: "delegateos-sjt-v2" })],
  ["an unknown member", encodeJson({ ...ROOT_TOKEN, note: "x" })],
  ["an unknown member in a block", forged({ ...authority, note: "x" })],
  ["a member that is missing", forged(without("maxChainDepth"))],
  ["null in a member", forged({ ...authority, chainDepth: null })],
  ["null as list of attenuations", encodeJson({ ...ROOT_TOKEN, attenuations: null })],
  ["null as list of signatures", encodeJson({ ...ROOT_TOKEN, signatures: null })],
  ["an issuer that is no principal", forged({ ...authority, issuer: "root" })],
  ["a delegatee of small order", forged({ ...authority, delegatee: `AQ${"A".repeat(41)}` })],
  ["a negative budget", forged({ ...authority, maxBudgetMicrocents: -1 })],
  ["a budget with a fraction", forged({ ...authority, maxBudgetMicrocents: 1.5 })],
  ["a budget above 2^53 - 1", forged({ ...authority, maxBudgetMicrocents: 2 ** 53 })],
  ["a budget as a text", forged({ ...authority, maxBudgetMicrocents: "1" })],
  ["a time with an offset", forged({ ...authority, expiresAt: "2026-02-17T13:00:00+00:00" })],
  ["a time with two digits of fraction", forged({ ...authority, expiresAt: "2026-02-17T13:00:00.00Z" })],
  ["30 February", forged({ ...authority, expiresAt: "2026-02-30T13:00:00Z" })],
  ["an expiry that is not after the issue", forged({ ...authority, expiresAt: authority.issuedAt })],
  ["an id of another kind", forged({ ...authority, contractId: "del_a1b2c3d4e5f6" })],
  ["an id in upper case", forged({ ...authority, contractId: "ct_A1B2C3D4E5F6" })],
  ["the reserved delegation id", forged({ ...authority, delegationId: "del_000000000000" })],
  ["a root with depth 1", forged({ ...authority, chainDepth: 1 })],
  ["a parent with depth 0", forged({ ...authority, parentDelegationId: "del_0000000000ff" })],
  [
    "a delegation that is its own parent",
    forged({ ...authority, parentDelegationId: authority.delegationId, chainDepth: 1 }),
  ],
  ["a delegation id twice", forged(authority, [link({ delegationId: authority.delegationId })])],
  ["a namespace in upper case", forged(withCapability({ namespace: "Docs" }))],
  ["an action of a star", forged(withCapability({ action: "*" }))],
  ["an unknown member in a capability", forged(withCapability({ note: "x" }))],
  ["a signature of 85 characters", encodeJson(withSignature({ signature: "A".repeat(85) }))],
  ["a signature with unused bits", encodeJson(withSignature({ signature: `${"A".repeat(85)}B` }))],
  ["a signature that covers a negative index", encodeJson(withSignature({ covers: -1 }))],
  ["more than 16,000 characters", "A".repeat(16_001)],
  ["33 attenuations", encodeJson({ ...ROOT_TOKEN, attenuations: Array(33).fill(link({})) })],
  [
    "65 capabilities",
    forged({ ...authority, capabilities: Array(65).fill({ namespace: "a", action: "b", resource: "c" }) }),
  ],
  ["a resource of 1,025 characters", forged(withCapability({ resource: "a".repeat(1025) }))],
  ["a resource with a dot segment", forged(withCapability({ resource: "/project/../x" }))],
  ["an empty resource", forged(withCapability({ resource: "" }))],
  ["a partial wildcard", forged(withCapability({ resource: "/proj*" }))],
  ["an escaped slash", forged(withCapability({ resource: "/a%2fb" }))],
];

export function malformedTokens(): VectorCase[] {
  return FORMS.map(([name, token]) => {
    const parsed = parseToken(token);
    if (parsed.ok) throw new Error(`${name}: the token is well formed`);
    return { name: `parse: ${name}`, operation: "parse", input: { token }, refusal: parsed.denial.type };
  });
}

/** Returns the first attenuation of the chain, with some members replaced. */
export function link(more: object): object {
  return {
    attenuator: principalOf("alice"),
    delegatee: principalOf("bob"),
    delegationId: "del_0000000000a1",
    contractId: CONTRACT,
    ...more,
  };
}

function without(member: keyof typeof authority): object {
  const { [member]: _, ...rest } = authority;
  return rest;
}

function withCapability(more: object): object {
  return { ...authority, capabilities: [{ ...FIRST, ...more }, ...MORE] };
}

function withSignature(more: object): object {
  const token = forge(authority);
  return { ...token, signatures: [{ ...token.signatures[0], ...more }] };
}
