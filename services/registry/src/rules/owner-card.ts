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

/** Signatures that one card may have. */
const MAX_SIGNATURES = 8;

const FIELD = "agent.signed_card";

/** A card that its owner has signed, read and found whole. */
export interface OwnerCard {
  /** In its canonical form. */
  readonly text: Uint8Array;
  /** What is signed: the canonical form without `signatures`. */
  readonly payload: Uint8Array;
  /** The addresses that it names. */
  readonly endpoints: readonly Endpoint[];
}

/**
 * Reads the A2A Agent Card that an agent's owner has signed. (A2A 8.4; DelegateOS 14.2)
 *
 * It is the owner's word, so only what makes it one is checked: that it is about this agent's principal, and that its key
 * has signed it. Other signatures may stand beside and are not judged.
 *
 * @returns undefined where there is none
 * @throws DeputeError INVALID_REQUEST for what is no such card, SIGNATURE_INVALID where the principal's key did not sign it
 */
export function readOwnerCard(
  { signedCard, principal }: Pick<Agent, "signedCard" | "principal">,
  verify: VerifyEd25519,
): OwnerCard | undefined {
  if (signedCard.length === 0) return undefined;
  if (principal === "") throw unfit("needs an agent with a principal, whose key signs it");
  const read = readJsonText(signedCard);
  if (read.problem !== undefined) throw unfit(read.problem);
  if (!isObject(read.value)) throw unfit("is no JSON object");
  const { signatures, ...card } = read.value as JsonObject;
  for (const member of ["name", "url", "version"]) {
    if (typeof card[member] !== "string" || card[member] === "") throw unfit(`has no ${member}`);
  }
  const { delegateos } = card;
  if (!isObject(delegateos) || delegateos.principal !== principal) {
    throw unfit("has no member delegateos with the agent's principal");
  }
  const payload = canonicalBytes(card);
  const key = decodeBase64Url(principal);
  if (!Array.isArray(signatures) || signatures.length > MAX_SIGNATURES || key === undefined) {
    throw unfit(`has no signatures, or more than ${MAX_SIGNATURES}`);
  }
  if (!signatures.some((signature) => isBy(key, signature, payload, verify))) {
    throw new DeputeError(ErrorReason.SIGNATURE_INVALID, `${FIELD}: is not signed by the agent's principal`, {
      violations: [{ field: FIELD, description: "is not signed by the agent's principal" }],
    });
  }
  const text = canonicalBytes(read.value);
  return { text, payload, endpoints: addressesOf(card).map((url) => ({ field: FIELD, url })) };
}

/** Whether a signature, in the general JSON form of a JWS (RFC 7515 7.2.1), is a key's over a payload. */
function isBy(key: Uint8Array, signature: JsonValue, payload: Uint8Array, verify: VerifyEd25519): boolean {
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

/** What clients would call. (A2A `AgentCard`) */
function addressesOf({ url, additionalInterfaces }: JsonObject): string[] {
  const more = Array.isArray(additionalInterfaces) ? additionalInterfaces : [];
  const urls = [url, ...more.map((each) => (isObject(each) ? each.url : undefined))];
  return urls.filter((each) => typeof each === "string");
}

function unfit(description: string): DeputeError {
  return new DeputeError(ErrorReason.INVALID_REQUEST, `${FIELD}: ${description}`, {
    violations: [{ field: FIELD, description }],
  });
}
