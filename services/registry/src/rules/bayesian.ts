/** How old an outcome is when it counts half, milliseconds. (DelegateOS 14.1, published reference code) */
export const HALF_LIFE_MS = 7 * 86_400_000;
/** The duration that counts as quick, milliseconds. */
const QUICK_MS = 60_000;
/** What is believed before the first outcome, and as how many outcomes it counts. */
const PRIOR = 0.5;
const PRIOR_WEIGHT = 1;
/** Outcomes for full confidence. */
const CONFIDENT_AT = 10;

/** What the word of the one that tells of an outcome is worth. */
export interface OutcomeWorth {
  /** 0 to 1: good news moves the view from a half by this share. */
  readonly standing: number;
  /** Good outcomes from the same source before. */
  readonly repeats: number;
}

/** Sums of outcomes, each weighted by its age at `time` (epoch ms). */
export interface BayesianState {
  readonly time: number;
  readonly count: number;
  readonly weight: number;
  readonly successes: number;
  readonly qualityWeight: number;
  readonly qualities: number;
  readonly speeds: number;
}

export const NO_OUTCOMES: BayesianState = {
  time: 0,
  count: 0,
  weight: 0,
  successes: 0,
  qualityWeight: 0,
  qualities: 0,
  speeds: 0,
};

/** One outcome of work. */
export interface Outcome {
  readonly success: boolean;
  /** 0 to 1; undefined where nothing judged it. */
  readonly quality: number | undefined;
  readonly durationMs: number;
}

/**
 * The sums with one outcome more, at `now`. A failure counts in full. A success counts less for each more from one source, and
 * what is good about it counts by the standing of the one that tells: any number of strangers moves the view no further than
 * one of them could.
 */
export function addOutcome(
  state: BayesianState,
  outcome: Outcome,
  now: number,
  { standing, repeats }: OutcomeWorth,
): BayesianState {
  const { weight, successes, qualityWeight, qualities, speeds } = aged(state, now);
  const { success, quality, durationMs } = outcome;
  const one = success ? 1 / (1 + repeats) : 1;
  const told = (value: number) => one * (value <= PRIOR ? value : PRIOR + (value - PRIOR) * standing);
  return {
    time: Math.max(now, state.time),
    count: state.count + 1,
    weight: weight + one,
    successes: successes + told(success ? 1 : 0),
    qualityWeight: qualityWeight + (quality === undefined ? 0 : one),
    qualities: qualities + (quality === undefined ? 0 : told(quality)),
    speeds: speeds + told(Math.min(1, QUICK_MS / Math.max(1, durationMs))),
  };
}

/** DelegateOS's view of the sums at `now`, each 0 to 1. */
export function bayesianView(state: BayesianState, now: number) {
  const { weight, successes, qualityWeight, qualities, speeds } = aged(state, now);
  const reliability = posterior(successes, weight);
  const quality = posterior(qualities, qualityWeight);
  const speed = posterior(speeds, weight);
  return {
    score: 0.4 * reliability + 0.4 * quality + 0.2 * speed,
    reliability,
    quality,
    speed,
    confidence: Math.min(1, state.count / CONFIDENT_AT),
  };
}

function posterior(sum: number, weight: number): number {
  return (sum + PRIOR * PRIOR_WEIGHT) / (weight + PRIOR_WEIGHT);
}

function aged(state: BayesianState, now: number): BayesianState {
  const left = 0.5 ** (Math.max(0, now - state.time) / HALF_LIFE_MS);
  const scaled = (value: number) => value * left;
  return {
    ...state,
    weight: scaled(state.weight),
    successes: scaled(state.successes),
    qualityWeight: scaled(state.qualityWeight),
    qualities: scaled(state.qualities),
    speeds: scaled(state.speeds),
  };
}
