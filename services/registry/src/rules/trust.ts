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

/** The components of one agent, each 0 to 100, as of a time in epoch ms. */
export interface TrustState {
  readonly components: Readonly<Record<Component, number>>;
  readonly time: number;
  readonly count: number;
}

/** What one piece of evidence does to one component. */
export type Effect =
  /** Raises it, by a weight of 0 to 1 and by what the witness's word is worth. */
  | { readonly component: Component; readonly gain: number }
  /** Takes away by a severity of 1 to 5. */
  | { readonly component: Component; readonly breach: number }
  /** Says what it is, 0 to 100. */
  | { readonly component: Component; readonly set: number };

/** What a witness's word is worth for gains. */
export interface Worth {
  /** 0 to 1: a gain counts by this share. */
  readonly standing: number;
  /** Gains end here, 0 to 100. */
  readonly ceiling: number;
  /** How many gains of a component came from the same source already. */
  readonly repeats: (component: Component) => number;
}

/**
 * How much a full gain is, and where its growth bends: a gain at `v` is a * ln(1 + (100 - v) / b). After n gains from the same
 * source the next one is divided by (1 + n) to a power above 1, so that all gains from one source have a bound.
 */
const GAIN = 4;
const GAIN_BEND = 20;
const REPEAT_POWER = 1.2;
/** The share that a breach takes, by its severity. */
const BREACH_SHARES = [0, 0.15, 0.25, 0.4, 0.6, 0.8] as const;
/** Idling costs nothing for so long, and then half of a component in so long; milliseconds. */
export const IDLE_GRACE_MS = 30 * 86_400_000;
export const IDLE_HALF_LIFE_MS = 180 * 86_400_000;
/** What proof of an agent's key at its registration is worth. */
const KEY_PROVEN = 50;

/**
 * What an agent begins with. Depute's choice: nothing but what is known, so that a new identity is never better than a
 * spoilt one.
 */
export function unknownTrust(hasKey: boolean, now: number): TrustState {
  const components = Object.fromEntries(COMPONENTS.map((component) => [component, 0])) as Record<
    Component,
    number
  >;
  if (hasKey) components.identityVerification = KEY_PROVEN;
  return { components, time: now, count: 0 };
}

/** The weighted sum of the components, 0 to 100. */
export function trustScore(state: TrustState): number {
  const sum = COMPONENTS.reduce((total, name) => total + WEIGHTS[name] * state.components[name], 0);
  return Math.min(100, Math.max(0, sum));
}

/** The score in what idling leaves and what it takes from. */
export function scoreParts(state: TrustState): { lasting: number; fading: number } {
  const lasting = WEIGHTS.identityVerification * state.components.identityVerification;
  return { lasting, fading: trustScore(state) - lasting };
}

/** The level of a score: how many thresholds it has reached. */
export function trustLevel(score: number, thresholds: readonly number[]): number {
  return thresholds.filter((threshold) => score >= threshold).length;
}

/**
 * What is left after a time without evidence: all of it for a month, and then by half in half a year. Who an agent is does
 * not fade. Depute's choice of constants, because the text publishes none; "idle decay is exponential". (ASP concepts,
 * trust scoring)
 */
export function decay(state: TrustState, now: number): TrustState {
  const idle = now - state.time - IDLE_GRACE_MS;
  if (idle <= 0) return state;
  const left = 0.5 ** (idle / IDLE_HALF_LIFE_MS);
  const components = { ...state.components };
  for (const name of COMPONENTS) {
    if (name !== "identityVerification") components[name] *= left;
  }
  return { ...state, components };
}

/**
 * The state after one piece of evidence at `now`. Growth is logarithmic, so that each further step is smaller, and goes by what
 * the witness's word is worth. A breach takes a share whoever tells of it, so that an agent with more trust loses more. (ASP
 * concepts, trust scoring)
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
