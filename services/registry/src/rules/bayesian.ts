/** How old an outcome is when it counts half, milliseconds. (DelegateOS 14.1, published reference code) */
export const HALF_LIFE_MS = 7 * 86_400_000;
/** The duration that counts as quick, milliseconds. */
const QUICK_MS = 60_000;
/** What is believed before the first outcome, and as how many outcomes it counts. */
const PRIOR = 0.5;
const PRIOR_WEIGHT = 1;
/** Outcomes for full confidence. */
const CONFIDENT_AT = 10;

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

/** The sums with one outcome more, at `now`. */
export function addOutcome(state: BayesianState, outcome: Outcome, now: number): BayesianState {
  const { weight, successes, qualityWeight, qualities, speeds } = aged(state, now);
  const judged = outcome.quality === undefined ? 0 : 1;
  return {
    time: Math.max(now, state.time),
    count: state.count + 1,
    weight: weight + 1,
    successes: successes + (outcome.success ? 1 : 0),
    qualityWeight: qualityWeight + judged,
    qualities: qualities + (outcome.quality ?? 0),
    speeds: speeds + Math.min(1, QUICK_MS / Math.max(1, outcome.durationMs)),
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
