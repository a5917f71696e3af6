import {
  type AttestationOutcome,
  type Evidence,
  type Rating,
  type SessionOutcome,
  SessionResult,
} from "@depute/contracts/depute/registry/v1/trust_service_pb";
import type { Component, Effect } from "./trust.ts";

/** The least score of who endorses. */
export const MIN_ENDORSER_SCORE = 30;
/** Endorsements that an agent may have. */
export const MAX_ENDORSEMENTS = 50;

const gain = (component: Component, weight: number): Effect => ({ component, gain: weight });
const breach = (component: Component, severity: number): Effect => ({ component, breach: severity });

/**
 * What an attested outcome does. A success counts where a verification gave it a quality: a worker's own word proves nothing.
 */
export function attestationEffects({ success, quality }: AttestationOutcome): Effect[] {
  if (!success) return [breach("commitmentFulfillment", 2), breach("behavioralConsistency", 1)];
  if (quality === undefined) return [];
  return [
    gain("commitmentFulfillment", 1),
    gain("behavioralConsistency", 0.5),
    gain("communicationHistory", 0.5),
    qualityEffect(quality),
  ];
}

/**
 * What the end of a session does. Gains need a stake. A breach counts in full, because the agent has signed what it broke. An
 * invitation without an answer counts where its sender is known: strangers may invite anybody.
 *
 * @param isKnown whether the counterpart is more than a stranger
 */
export function sessionEffects({ result, severity, staked }: SessionOutcome, isKnown: boolean): Effect[] {
  const badly = Math.max(1, severity);
  const gains = (...effects: Effect[]) => (staked ? effects : []);
  switch (result) {
    case SessionResult.COMPLETED:
      return gains(
        gain("communicationHistory", 1),
        gain("behavioralConsistency", 0.5),
        gain("securityPosture", 0.5),
      );
    case SessionResult.TIMED_OUT:
      return isKnown ? [breach("communicationHistory", 1), breach("behavioralConsistency", 1)] : [];
    case SessionResult.VIOLATED:
      return [
        breach("securityPosture", badly),
        breach("communicationHistory", badly),
        breach("behavioralConsistency", badly),
      ];
    case SessionResult.FULFILLED:
      return gains(gain("commitmentFulfillment", 1), gain("behavioralConsistency", 0.5));
    case SessionResult.BREACHED:
      return [breach("commitmentFulfillment", badly), breach("behavioralConsistency", badly)];
    case SessionResult.PAID:
      return gains(gain("economicReliability", 1));
    case SessionResult.NOT_PAID:
      return [breach("economicReliability", badly), breach("behavioralConsistency", 1)];
    default:
      return [];
  }
}

/** Whether an outcome is work with a stake or a verified result, so that it may be rated. */
export function isSubstantial(kind: Evidence["kind"]): boolean {
  if (kind.case === "attestation") return kind.value.quality !== undefined;
  return kind.case === "session" && kind.value.staked;
}

/** What a rating of substantial work does: three stars are neither praise nor blame. */
export function ratingEffects({ stars }: Rating): Effect[] {
  if (stars < 3) return [breach("responseQuality", stars < 2 ? 2 : 1)];
  return stars === 3 ? [] : [gain("responseQuality", (stars - 3) / 2)];
}

/** What an endorsement does. */
export function endorsementEffects(): Effect[] {
  return [gain("peerEndorsements", 1)];
}

function qualityEffect(quality: number): Effect {
  return quality < 0.5 ? breach("responseQuality", 1) : gain("responseQuality", (quality - 0.5) * 2);
}
