import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import type { Agent } from "@depute/contracts/depute/registry/v1/agent_pb";
import {
  canonicalBytes,
  DeputeError,
  decodeBase64Url,
  ErrorReason,
  encodeBase64Url,
  isObject,
} from "@depute/core";
import type { Endpoint } from "./endpoints.ts";
import { readJsonText } from "./json-text.ts";
import type { VerifyEd25519 } from "./jws.ts";

const MAX_SIGNATURES = 8;

const FIELD = "agent.signed_card";

/** A valid card with the signature of the agent's principal. */
export interface OwnerCard {
  /** The canonical JSON of the card. */
  readonly text: Uint8Array;
  /** The signed bytes: the canonical JSON of the card without `signatures`. */
  readonly payload: Uint8Array;
  /** The URLs in the card. */
  readonly endpoints: readonly Endpoint[];
}

/**
 * Reads the A2A Agent Card that an agent's principal signed. (A2A 8.4; DelegateOS 14.2) The card is a statement of the
 * principal. So two checks suffice: the card names the principal, and the principal's key signed the card. The card may
 * have other signatures, which are not verified.
 *
 * @returns undefined without a card
 * @throws DeputeError INVALID_REQUEST for a malformed card, SIGNATURE_INVALID without the principal's signature
 */
export function readOwnerCard(
  { signedCard, principal }: Pick<Agent, "signedCard" | "principal">,
  verify: VerifyEd25519,
): OwnerCard | undefined {
  if (signedCard.length === 0) return undefined;
  if (principal === "")
    throw invalidCard("requires an agent with a principal, and a signature by the principal's key");
  const read = readJsonText(signedCard);
  if (read.problem !== undefined) throw invalidCard(read.problem);
  if (!isObject(read.value)) throw invalidCard("is not a JSON object");
  const { signatures, ...card } = read.value as JsonObject;
  for (const member of ["name", "url", "version"]) {
    if (typeof card[member] !== "string" || card[member] === "") throw invalidCard(`has no ${member}`);
  }
  const { delegateos } = card;
  if (!isObject(delegateos) || delegateos.principal !== principal) {
    throw invalidCard("has no member delegateos with the agent's principal");
  }
  const payload = canonicalBytes(card);
  const key = decodeBase64Url(principal);
  if (!Array.isArray(signatures) || signatures.length > MAX_SIGNATURES || key === undefined) {
    throw invalidCard(`has no signatures, or more than ${MAX_SIGNATURES}`);
  }
  if (!signatures.some((signature) => isSignedBy(key, signature, payload, verify))) {
    throw new DeputeError(ErrorReason.SIGNATURE_INVALID, `${FIELD}: is not signed by the agent's principal`, {
      violations: [{ field: FIELD, description: "is not signed by the agent's principal" }],
    });
  }
  const text = canonicalBytes(read.value);
  return { text, payload, endpoints: addressesOf(card).map((url) => ({ field: FIELD, url })) };
}

/** Whether a key signed a payload. The signature is an element of a JWS in general JSON form (RFC 7515 7.2.1). */
function isSignedBy(
  key: Uint8Array,
  signature: JsonValue,
  payload: Uint8Array,
  verify: VerifyEd25519,
): boolean {
  if (!isObject(signature)) return false;
  const { protected: header, signature: text } = signature;
  if (typeof header !== "string" || typeof text !== "string") return false;
  const bytes = decodeBase64Url(text);
  const headerBytes = decodeBase64Url(header);
  if (bytes?.length !== 64 || headerBytes === undefined) return false;
  const read = readJsonText(headerBytes);
  if (read.problem !== undefined || !isObject(read.value)) return false;
  const { alg, crit, b64 } = read.value;
  if (alg !== "EdDSA" || crit !== undefined || b64 !== undefined) return false;
  return verify(bytes, new TextEncoder().encode(`${header}.${encodeBase64Url(payload)}`), key);
}

/** Returns the URLs in a card that the card's readers may call. (A2A `AgentCard`) */
function addressesOf({ url, additionalInterfaces }: JsonObject): string[] {
  const more = Array.isArray(additionalInterfaces) ? additionalInterfaces : [];
  const urls = [url, ...more.map((each) => (isObject(each) ? each.url : undefined))];
  return urls.filter((each) => typeof each === "string");
}

function invalidCard(description: string): DeputeError {
  return new DeputeError(ErrorReason.INVALID_REQUEST, `${FIELD}: ${description}`, {
    violations: [{ field: FIELD, description }],
  });
}
