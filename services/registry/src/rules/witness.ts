import { type Affiliation, haveOneOwner } from "@depute/core";
import { type Component, type Effect, IDLE_HALF_LIFE_MS, type Worth } from "./trust.ts";

/** What the word of a stranger is worth: of an agent without a proven organization and without trust of its own. */
export const STRANGER_STANDING = 0.1;
/**
 * The value above which strangers raise no component. Keys cost nothing, so this bounds what any number of them does: the
 * score rises by at most 8, from 10 to 18, which is below a quarter of the way to level 2.
 */
export const STRANGER_CEILING = 10;

/** An agent that vouches for what happened. */
export interface Witness {
  readonly affiliation: Affiliation;
  /** Its own score now. */
  readonly score: number;
}

/**
 * What a witness's word is worth, 0 to 1. Depute's choice: what no stranger can invent is an organization that an operator has
 * proven, and trust that was earned before. An agent is established from level 2 on, and counts by its score.
 *
 * @param established the score at which level 2 begins
 */
export function standingOf({ affiliation, score }: Witness, established: number): number {
  if (affiliation.organizations.length > 0) return 1;
  return score >= established ? score / 100 : STRANGER_STANDING;
}

/** Whether a witness is more than a stranger. */
export function isKnown(standing: number): boolean {
  return standing > STRANGER_STANDING;
}

/**
 * The witness whose word counts most: the counterpart, or a verifier of another owner than both.
 *
 * @param verifier undefined where no third party verified
 */
export function bestWitness(
  subject: Affiliation,
  counterpart: Witness,
  verifier: Witness | undefined,
  established: number,
): Witness {
  if (verifier === undefined) return counterpart;
  const parties = [subject, counterpart.affiliation];
  if (parties.some((party) => haveOneOwner(party, verifier.affiliation))) return counterpart;
  return standingOf(verifier, established) > standingOf(counterpart, established) ? verifier : counterpart;
}

/** Gains of one agent that came from one source, as of a time in epoch ms. They fade as trust does. */
export interface Source {
  readonly time: number;
  readonly gains: Readonly<Partial<Record<Component, number>>>;
}

/** The names of the sources that a witness is: the agent, its key and its organizations, so that none of them starts anew. */
export function sourceNames({ agentId, principal, organizations }: Affiliation): string[] {
  return [`a${agentId}`, `p${principal}`, ...organizations.map((organization) => `o${organization}`)];
}

/** What sources are worth together: the one with most gains counts. */
export function worthOf(standing: number, sources: readonly Source[], now: number): Worth {
  return {
    standing,
    ceiling: isKnown(standing) ? 100 : STRANGER_CEILING,
    repeats: (component) =>
      sources.reduce((most, source) => Math.max(most, gainsOf(source, component, now)), 0),
  };
}

/** A source with the gains of one more piece of evidence. */
export function withGains(source: Source | undefined, effects: readonly Effect[], now: number): Source {
  const gains: Partial<Record<Component, number>> = {};
  for (const component of Object.keys(source?.gains ?? {}) as Component[]) {
    gains[component] = gainsOf(source, component, now);
  }
  for (const effect of effects) {
    if ("gain" in effect) gains[effect.component] = (gains[effect.component] ?? 0) + 1;
  }
  return { time: Math.max(now, source?.time ?? now), gains };
}

function gainsOf(source: Source | undefined, component: Component, now: number): number {
  if (source === undefined) return 0;
  const age = Math.max(0, now - source.time);
  return (source.gains[component] ?? 0) * 0.5 ** (age / IDLE_HALF_LIFE_MS);
}
