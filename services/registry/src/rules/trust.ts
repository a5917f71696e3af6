/** ASP's eight components of trust and their weights. (ASP concepts, trust scoring) */
export const WEIGHTS = {
  identityVerification: 0.2,
  communicationHistory: 0.15,
  commitmentFulfillment: 0.2,
  behavioralConsistency: 0.1,
  responseQuality: 0.1,
  securityPosture: 0.1,
  economicReliability: 0.1,
  peerEndorsements: 0.05,
} as const;

export type Component = keyof typeof WEIGHTS;
export const COMPONENTS = Object.keys(WEIGHTS) as Component[];

/** The components of one agent, each from 0 to 100, at a time in epoch milliseconds. */
export interface TrustState {
  readonly components: Readonly<Record<Component, number>>;
  readonly time: number;
  readonly count: number;
}

/** The effect of one piece of evidence on one component. */
export type Effect =
  /** Raises the component, by a weight from 0 to 1 and by the witness's worth. */
  | { readonly component: Component; readonly gain: number }
  /** Reduces the component, by a severity from 1 to 5. */
  | { readonly component: Component; readonly breach: number }
  /** Sets the component to a value from 0 to 100. */
  | { readonly component: Component; readonly set: number };

/** The facts about a witness that determine how much a gain counts. */
export interface Worth {
  /** The share of a gain that counts, from 0 to 1. */
  readonly standing: number;
  /** The maximum value to which gains raise a component, from 0 to 100. */
  readonly ceiling: number;
  /**
   * The number of earlier gains of a component from the same source. The number fades with time, so it may be a
   * fraction.
   */
  readonly repeats: (component: Component) => number;
}

/**
 * A full gain at the value `v` is GAIN * ln(1 + (100 - v) / GAIN_BEND). After n gains from one source, the next gain
 * from this source is divided by (1 + n) ^ REPEAT_POWER. The power is above 1, so the sum of all gains from one
 * source is bounded.
 */
const GAIN = 4;
const GAIN_BEND = 20;
const REPEAT_POWER = 1.2;
/** The share of a component that a breach removes. The index is the breach's severity. */
const BREACH_SHARES = [0, 0.15, 0.25, 0.4, 0.6, 0.8] as const;
/** The time without evidence after which trust fades, in milliseconds. */
export const IDLE_GRACE_MS = 30 * 86_400_000;
/** The time in which a component halves without evidence, in milliseconds. The time begins after IDLE_GRACE_MS. */
export const IDLE_HALF_LIFE_MS = 180 * 86_400_000;
/** The value of the identity component for an agent that proved its key at registration. */
const KEY_PROVEN = 50;

/**
 * Returns the trust of a new agent: 0 in each component, except identity if its key is proven. Depute's choice: 0, so
 * that an agent with low trust gains nothing by a new registration.
 */
export function unknownTrust(hasKey: boolean, now: number): TrustState {
  const components = Object.fromEntries(COMPONENTS.map((component) => [component, 0])) as Record<
    Component,
    number
  >;
  if (hasKey) components.identityVerification = KEY_PROVEN;
  return { components, time: now, count: 0 };
}

/** Returns the weighted sum of the components, from 0 to 100. */
export function trustScore(state: TrustState): number {
  const sum = COMPONENTS.reduce((total, name) => total + WEIGHTS[name] * state.components[name], 0);
  return Math.min(100, Math.max(0, sum));
}

/** Splits the score into the part that stays and the part that fades without evidence. */
export function scoreParts(state: TrustState): { lasting: number; fading: number } {
  const lasting = WEIGHTS.identityVerification * state.components.identityVerification;
  return { lasting, fading: trustScore(state) - lasting };
}

/** Returns the level of a score: the number of thresholds that it reaches. */
export function trustLevel(score: number, thresholds: readonly number[]): number {
  return thresholds.filter((threshold) => score >= threshold).length;
}

/**
 * Returns the state after time without evidence. Trust stays unchanged for a month, and then halves every half year.
 * Verified identity does not fade. The constants are Depute's choice, because ASP publishes none and says only "idle
 * decay is exponential". (ASP concepts, trust scoring)
 */
export function decay(state: TrustState, now: number): TrustState {
  const idle = now - state.time - IDLE_GRACE_MS;
  if (idle <= 0) return state;
  const remainingShare = 0.5 ** (idle / IDLE_HALF_LIFE_MS);
  const components = { ...state.components };
  for (const name of COMPONENTS) {
    if (name !== "identityVerification") components[name] *= remainingShare;
  }
  return { ...state, components };
}

/**
 * Returns the state after one piece of evidence at `now`. Growth is logarithmic, so each further gain is smaller.
 * Gains scale with the witness's worth. A breach removes a fixed share of the component for any witness, so an agent
 * with more trust loses more. (ASP concepts, trust scoring)
 */
export function applyEvidence(
  state: TrustState,
  effects: readonly Effect[],
  now: number,
  worth: Worth,
): TrustState {
  const components = { ...decay(state, now).components };
  for (const effect of effects) {
    const value = components[effect.component];
    components[effect.component] = clamp(valueAfter(value, effect, worth));
  }
  return { components, time: Math.max(now, state.time), count: state.count + 1 };
}

function valueAfter(value: number, effect: Effect, { standing, ceiling, repeats }: Worth): number {
  if ("set" in effect) return effect.set;
  if ("gain" in effect) {
    const share = (effect.gain * standing) / (1 + repeats(effect.component)) ** REPEAT_POWER;
    const raised = value + GAIN * share * Math.log1p((100 - value) / GAIN_BEND);
    return Math.max(value, Math.min(ceiling, raised));
  }
  return value * (1 - (BREACH_SHARES[Math.min(5, Math.max(1, effect.breach))] ?? 0));
}

function clamp(value: number): number {
  return Math.min(100, Math.max(0, value));
}
