import { clone, toJson } from "@bufbuild/protobuf";
import { type Offer, OfferSchema, PricingModel } from "@depute/contracts/agenta/delegation/v0/offer_pb";
import {
  canonicalBytes,
  DeputeError,
  ErrorReason,
  type FieldViolation,
  isDateTimeFormat,
  isUriFormat,
  parseOffsetTime,
} from "@depute/core";
import type { Sha256Hex } from "./version-hash.ts";

/** What a usage-based price may be for: the members of a receipt's `usage`. (Agenta execution_receipt.schema.json) */
export const USAGE_UNITS: readonly string[] = ["input_units", "output_units", "compute_seconds"];

/** An offer that is whole, with its times as epoch ms. */
export interface ReadOffer {
  readonly offer: Offer;
  readonly validFrom: number;
  /** Number.MAX_SAFE_INTEGER for an offer without an end, so that one comparison finds what is valid. */
  readonly validUntil: number;
  /** The words that it is found by, in lower case, each once. */
  readonly capabilities: readonly string[];
  /** Who may buy; undefined for everyone, empty for nobody. */
  readonly buyers: readonly string[] | undefined;
}

// Deeper than protobuf's own limit on nesting.
const MAX_DEPTH = 256;

/**
 * Reads an offer, and refuses one that contradicts itself. (Agenta offer.schema.json)
 *
 * Depute's choice: an offer whose end is past is refused too, and a usage-based price has to name a unit that a receipt
 * can report, because otherwise its price could never be computed.
 *
 * @param organization that the seller is registered with
 * @param now epoch ms
 * @throws DeputeError INVALID_REQUEST with every fault
 */
export function readOffer(offer: Offer, organization: string, now: number): ReadOffer {
  const violations: FieldViolation[] = [];
  const fault = (field: string, description: string) => {
    violations.push({ field: `offer.${field}`, description });
  };
  const time = (field: string, text: string | undefined) => {
    const value = text === undefined || !isDateTimeFormat(text) ? undefined : parseOffsetTime(text);
    if (text !== undefined && value === undefined) fault(field, "is no date of the calendar");
    return value;
  };
  for (const [field, uri] of [
    ["terms_url", offer.termsUrl],
    ["seller_agent.endpoint", offer.sellerAgent?.endpoint],
  ] as const) {
    if (uri !== undefined && !isUriFormat(uri)) fault(field, "is no URI that the schema takes");
  }
  const validFrom = time("valid_from", offer.validFrom);
  const validUntil = time("valid_until", offer.validUntil);
  if (validUntil !== undefined && validFrom !== undefined && validUntil <= validFrom) {
    fault("valid_until", "must be after valid_from");
  } else if (validUntil !== undefined && validUntil <= now) {
    fault("valid_until", "is past");
  }
  const notBefore = time("execution_window.not_before", offer.executionWindow?.notBefore);
  const notAfter = time("execution_window.not_after", offer.executionWindow?.notAfter);
  if (notAfter !== undefined) {
    if (notBefore !== undefined && notAfter <= notBefore) {
      fault("execution_window.not_after", "must be after not_before");
    } else if (validFrom !== undefined && notAfter <= validFrom) {
      fault("execution_window.not_after", "must be after valid_from: nothing could be bought in time");
    }
  }
  const levels = offer.serviceLevels;
  if (levels !== undefined && levels.targetCompletionSeconds > levels.maxCompletionSeconds) {
    fault("service_levels.target_completion_seconds", "must not be over max_completion_seconds");
  }
  const { pricing } = offer;
  if (pricing?.pricingModel === PricingModel.USAGE_BASED && !USAGE_UNITS.includes(pricing.unit ?? "")) {
    fault("pricing.unit", `must be one of ${USAGE_UNITS.join(", ")} for a usage-based price`);
  }
  if (offer.sellerAgent?.organizationId !== organization) {
    fault("seller_agent.organization_id", "must be the organization that the seller is registered with");
  }
  if (violations.length > 0 || validFrom === undefined) {
    const summary = violations.map(({ field, description }) => `${field}: ${description}`).join("; ");
    throw new DeputeError(ErrorReason.INVALID_REQUEST, summary, { violations });
  }
  return {
    offer,
    validFrom,
    validUntil: validUntil ?? Number.MAX_SAFE_INTEGER,
    capabilities: [...new Set((offer.capabilities?.values ?? []).map(capabilityWord))],
    buyers: offer.allowedBuyerAgents?.values,
  };
}

/** A capability of an offer as it is compared. */
export function capabilityWord(capability: string): string {
  return capability.normalize("NFKC").toLowerCase();
}

/**
 * The digest of an offer's content: SHA-256, 64 lower-case hex digits, of the canonical JSON (RFC 8785) of its protobuf
 * JSON without its version.
 *
 * @throws CanonicalError when a text or a number of it has no JSON form
 */
export function offerDigest(offer: Offer, sha256: Sha256Hex): string {
  const content = clone(OfferSchema, offer);
  delete content.offerVersion;
  return sha256(canonicalBytes(toJson(OfferSchema, content), MAX_DEPTH));
}

/** Whether a version may be bought at a time. Its end does not belong to its validity. */
export function isOpen(
  offer: { readonly withdrawn: boolean; readonly validFrom: number; readonly validUntil: number },
  now: number,
): boolean {
  return !offer.withdrawn && offer.validFrom <= now && now < offer.validUntil;
}

/**
 * The version for an offer that names none: the next number, counted from the versions that there are, that is not taken.
 */
export function nextVersion(count: number, isTaken: (version: string) => boolean): string {
  let number = count + 1;
  while (isTaken(String(number))) number += 1;
  return String(number);
}
