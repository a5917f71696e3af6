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

/**
 * The units that a usage-based price may name. These are the members of a receipt's `usage`. (Agenta
 * execution_receipt.schema.json)
 */
export const USAGE_UNITS: readonly string[] = ["input_units", "output_units", "compute_seconds"];

/** A valid offer. Times are epoch milliseconds. */
export interface ReadOffer {
  readonly offer: Offer;
  readonly validFrom: number;
  /**
   * The end of the sale, in epoch milliseconds. Number.MAX_SAFE_INTEGER for an offer without an end, so that one
   * comparison finds valid offers.
   */
  readonly validUntil: number;
  /** The distinct words of the offer's capabilities, in lower case. Searches compare these words. */
  readonly capabilities: readonly string[];
  /** The buyers to which the offer is open; undefined for all buyers, empty for none. */
  readonly buyers: readonly string[] | undefined;
}

// Maximum nesting of an offer in canonical JSON. No offer reaches it, because protobuf's own limit is lower.
const MAX_DEPTH = 256;

/**
 * Parses an offer, and refuses an inconsistent one. (Agenta offer.schema.json) Depute's choice: refuses an offer that
 * has already ended. A usage-based price must name a unit of receipts, because without such a unit the amount could
 * never be computed.
 *
 * @param organization the seller's registered organization
 * @param now epoch milliseconds
 * @throws DeputeError INVALID_REQUEST with every fault
 */
export function readOffer(offer: Offer, organization: string, now: number): ReadOffer {
  const violations: FieldViolation[] = [];
  const fault = (field: string, description: string) => {
    violations.push({ field: `offer.${field}`, description });
  };
  const time = (field: string, text: string | undefined) => {
    const value = text === undefined || !isDateTimeFormat(text) ? undefined : parseOffsetTime(text);
    if (text !== undefined && value === undefined) fault(field, "is not a calendar date");
    return value;
  };
  for (const [field, uri] of [
    ["terms_url", offer.termsUrl],
    ["seller_agent.endpoint", offer.sellerAgent?.endpoint],
  ] as const) {
    if (uri !== undefined && !isUriFormat(uri)) fault(field, "is not a URI that the schema permits");
  }
  const validFrom = time("valid_from", offer.validFrom);
  const validUntil = time("valid_until", offer.validUntil);
  if (validUntil !== undefined && validFrom !== undefined && validUntil <= validFrom) {
    fault("valid_until", "must be after valid_from");
  } else if (validUntil !== undefined && validUntil <= now) {
    fault("valid_until", "must be in the future");
  }
  const notBefore = time("execution_window.not_before", offer.executionWindow?.notBefore);
  const notAfter = time("execution_window.not_after", offer.executionWindow?.notAfter);
  if (notAfter !== undefined) {
    if (notBefore !== undefined && notAfter <= notBefore) {
      fault("execution_window.not_after", "must be after not_before");
    } else if (validFrom !== undefined && notAfter <= validFrom) {
      fault("execution_window.not_after", "must be after valid_from; otherwise no execution fits the window");
    }
  }
  const levels = offer.serviceLevels;
  if (levels !== undefined && levels.targetCompletionSeconds > levels.maxCompletionSeconds) {
    fault("service_levels.target_completion_seconds", "must not exceed max_completion_seconds");
  }
  const { pricing } = offer;
  if (pricing?.pricingModel === PricingModel.USAGE_BASED && !USAGE_UNITS.includes(pricing.unit ?? "")) {
    fault("pricing.unit", `must be one of ${USAGE_UNITS.join(", ")} for a usage-based price`);
  }
  if (offer.sellerAgent?.organizationId !== organization) {
    fault("seller_agent.organization_id", "must be the seller's registered organization");
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

/** Returns the word of an offer's capability that searches compare: the capability in lower case. */
export function capabilityWord(capability: string): string {
  return capability.normalize("NFKC").toLowerCase();
}

/**
 * Returns the digest of an offer's content: SHA-256 of the canonical JSON (RFC 8785) of the offer's protobuf JSON
 * without its version. The digest has 64 hex digits in lower case.
 *
 * @throws CanonicalError when a string or number has no JSON form
 */
export function offerDigest(offer: Offer, sha256: Sha256Hex): string {
  const content = clone(OfferSchema, offer);
  delete content.offerVersion;
  return sha256(canonicalBytes(toJson(OfferSchema, content), MAX_DEPTH));
}

/** Whether a version is for sale at a time. At the end time, the version is no longer for sale. */
export function isOpen(
  offer: { readonly withdrawn: boolean; readonly validFrom: number; readonly validUntil: number },
  now: number,
): boolean {
  return !offer.withdrawn && offer.validFrom <= now && now < offer.validUntil;
}

/** Returns a new version name: the lowest unused number above the number of versions. */
export function nextVersion(count: number, isTaken: (version: string) => boolean): string {
  let number = count + 1;
  while (isTaken(String(number))) number += 1;
  return String(number);
}
