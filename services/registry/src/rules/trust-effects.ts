import {
  type AttestationOutcome,
  type Rating,
  type SessionOutcome,
  SessionResult,
} from "@depute/contracts/depute/registry/v1/trust_service_pb";
import type { Component, Effect } from "./trust.ts";

/** How much an endorsement, or a rating, by an agent of the same organization counts. (ASP specification, security) */
export const SAME_ORGANIZATION = 0.2;
/** The least score of who endorses. */
export const MIN_ENDORSER_SCORE = 30;
/** Endorsements that an agent may have. */
export const MAX_ENDORSEMENTS = 50;

const gain = (component: Component, weight: number): Effect => ({ component, gain: weight });
const breach = (component: Component, severity: number): Effect => ({ component, breach: severity });

/** What an attested outcome does. */
export function attestationEffects({ success, quality }: AttestationOutcome): Effect[] {
  if (!success) return [breach("commitmentFulfillment", 2), breach("behavioralConsistency", 1)];
  return [
    gain("commitmentFulfillment", 1),
    gain("behavioralConsistency", 0.5),
    gain("communicationHistory", 0.5),
    ...(quality === undefined ? [] : [qualityEffect(quality)]),
  ];
}

/** What the end of a session does. */
export function sessionEffects({ result, severity }: SessionOutcome): Effect[] {
  const badly = Math.max(1, severity);
  switch (result) {
    case SessionResult.COMPLETED:
      return [
        gain("communicationHistory", 1),
        gain("behavioralConsistency", 0.5),
        gain("securityPosture", 0.5),
      ];
    case SessionResult.TIMED_OUT:
      return [breach("communicationHistory", 1), breach("behavioralConsistency", 1)];
    case SessionResult.VIOLATED:
      return [
        breach("securityPosture", badly),
        breach("communicationHistory", badly),
        breach("behavioralConsistency", badly),
      ];
    case SessionResult.FULFILLED:
      return [gain("commitmentFulfillment", 1), gain("behavioralConsistency", 0.5)];
    case SessionResult.BREACHED:
      return [breach("commitmentFulfillment", badly), breach("behavioralConsistency", badly)];
    case SessionResult.PAID:
      return [gain("economicReliability", 1)];
    case SessionResult.NOT_PAID:
      return [breach("economicReliability", badly), breach("behavioralConsistency", 1)];
    default:
      return [];
  }
}

/** What a rating does: three stars are neither praise nor blame. */
export function ratingEffects({ stars }: Rating, sameOrganization: boolean): Effect[] {
  if (stars < 3) return [breach("responseQuality", stars < 2 ? 2 : 1)];
  return [gain("responseQuality", ((stars - 3) / 2) * (sameOrganization ? SAME_ORGANIZATION : 1))];
}

/** What an endorsement does. */
export function endorsementEffects(sameOrganization: boolean): Effect[] {
  return [gain("peerEndorsements", sameOrganization ? SAME_ORGANIZATION : 1)];
}

function qualityEffect(quality: number): Effect {
  return quality < 0.5 ? breach("responseQuality", 1) : gain("responseQuality", (quality - 0.5) * 2);
}
