import {
  type AttestationOutcome,
  type Evidence,
  type Rating,
  type SessionOutcome,
  SessionResult,
} from "@depute/contracts/depute/registry/v1/trust_service_pb";
import type { Component, Effect } from "./trust.ts";

/** Minimum score with which an agent may endorse another. */
export const MIN_ENDORSER_SCORE = 30;
/** Maximum number of endorsements about one agent. */
export const MAX_ENDORSEMENTS = 50;

const gain = (component: Component, weight: number): Effect => ({ component, gain: weight });
const breach = (component: Component, severity: number): Effect => ({ component, breach: severity });

/**
 * Returns the effects of an attested outcome. A success counts only if a verification measured its quality, because
 * a worker can claim any success.
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
 * Returns the effects of a session's end. A session without a stake gives no gain. A breach counts in full, because
 * the agent signed the obligation. An unanswered invitation counts only if its sender is known, because strangers
 * may invite any agent.
 *
 * @param isKnown whether the counterpart is known, and not a stranger
 */
export function sessionEffects({ result, severity, staked }: SessionOutcome, isKnown: boolean): Effect[] {
  const breachSeverity = Math.max(1, severity);
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
        breach("securityPosture", breachSeverity),
        breach("communicationHistory", breachSeverity),
        breach("behavioralConsistency", breachSeverity),
      ];
    case SessionResult.FULFILLED:
      return gains(gain("commitmentFulfillment", 1), gain("behavioralConsistency", 0.5));
    case SessionResult.BREACHED:
      return [
        breach("commitmentFulfillment", breachSeverity),
        breach("behavioralConsistency", breachSeverity),
      ];
    case SessionResult.PAID:
      return gains(gain("economicReliability", 1));
    case SessionResult.NOT_PAID:
      return [breach("economicReliability", breachSeverity), breach("behavioralConsistency", 1)];
    default:
      return [];
  }
}

/** Whether evidence is about work with a stake or a verified result. Only such work can be rated. */
export function isSubstantial(kind: Evidence["kind"]): boolean {
  if (kind.case === "attestation") return kind.value.quality !== undefined;
  return kind.case === "session" && kind.value.staked;
}

/** Returns the effects of a rating of substantial work. Three stars are neutral. */
export function ratingEffects({ stars }: Rating): Effect[] {
  if (stars < 3) return [breach("responseQuality", stars < 2 ? 2 : 1)];
  return stars === 3 ? [] : [gain("responseQuality", (stars - 3) / 2)];
}

/** Returns the effects of an endorsement. */
export function endorsementEffects(): Effect[] {
  return [gain("peerEndorsements", 1)];
}

function qualityEffect(quality: number): Effect {
  return quality < 0.5 ? breach("responseQuality", 1) : gain("responseQuality", (quality - 0.5) * 2);
}
