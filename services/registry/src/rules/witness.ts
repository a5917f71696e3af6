import { type Affiliation, haveOneOwner } from "@depute/core";
import { type Component, type Effect, IDLE_HALF_LIFE_MS, type Worth } from "./trust.ts";

/** The standing of a stranger: an agent without a proven organization and without earned trust. */
export const STRANGER_STANDING = 0.1;
/**
 * Maximum value to which gains from strangers raise a component. Any party can create keys at no cost, so this limits
 * the effect of many keys. Strangers raise the total score by at most 8, from 10 to 18: less than a quarter of the way
 * to level 2.
 */
export const STRANGER_CEILING = 10;

/** An agent that vouches for an outcome. */
export interface Witness {
  readonly affiliation: Affiliation;
  /** The witness's current score. */
  readonly score: number;
}

/**
 * Returns the standing of a witness, from 0 to 1. Depute's choice: the standing depends on proven organizations and
 * earlier trust, because strangers can fake neither. The standing is 1 with a proven organization. Without one, the
 * standing is the witness's score divided by 100 from level 2 on, and STRANGER_STANDING below level 2.
 *
 * @param established the score at which level 2 begins
 */
export function witnessStanding({ affiliation, score }: Witness, established: number): number {
  if (affiliation.organizations.length > 0) return 1;
  return score >= established ? score / 100 : STRANGER_STANDING;
}

/** Whether a witness has a higher standing than STRANGER_STANDING. */
export function isKnown(standing: number): boolean {
  return standing > STRANGER_STANDING;
}

/**
 * Returns the witness with the highest standing: the counterpart, or the verifier. The verifier counts only if it has
 * neither the principal nor an organization of a party.
 *
 * @param verifier undefined without a verification by a third party
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
  return witnessStanding(verifier, established) > witnessStanding(counterpart, established)
    ? verifier
    : counterpart;
}

/**
 * The number of gains of one agent from one source, by component, at a time in epoch milliseconds. The numbers halve
 * every IDLE_HALF_LIFE_MS.
 */
export interface Source {
  readonly time: number;
  readonly gains: Readonly<Partial<Record<Component, number>>>;
}

/**
 * Returns the names under which gains from a witness are counted: the agent, its key and its organizations. So
 * evidence from a new key or agent of the same organization counts as repeated.
 */
export function sourceNames({ agentId, principal, organizations }: Affiliation): string[] {
  return [`a${agentId}`, `p${principal}`, ...organizations.map((organization) => `o${organization}`)];
}

/**
 * Returns the worth of evidence from several sources. The number of repeats comes from the source with the most
 * earlier gains.
 */
export function worthOf(standing: number, sources: readonly Source[], now: number): Worth {
  return {
    standing,
    ceiling: isKnown(standing) ? 100 : STRANGER_CEILING,
    repeats: (component) =>
      sources.reduce((most, source) => Math.max(most, gainsOf(source, component, now)), 0),
  };
}

/** Returns a source after one more piece of evidence. */
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
