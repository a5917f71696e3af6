/**
 * The age in milliseconds at which an outcome has lost half of its weight. (DelegateOS 14.1, published reference
 * code)
 */
export const HALF_LIFE_MS = 7 * 86_400_000;
/** The longest duration of work, in milliseconds, that still gets the full speed score. */
const QUICK_MS = 60_000;
/** The score of an agent without outcomes (PRIOR), which weighs as much as PRIOR_WEIGHT outcomes. */
const PRIOR = 0.5;
const PRIOR_WEIGHT = 1;
/** The number of outcomes at which confidence reaches its maximum. */
const CONFIDENT_AT = 10;

/** The facts about the witness that determine the weight of an outcome. */
export interface OutcomeWorth {
  /** The witness's standing, from 0 to 1. If an outcome's value exceeds 0.5, the standing scales the excess. */
  readonly standing: number;
  /** The number of earlier gains from the same source. The number fades with time, so it may be a fraction. */
  readonly repeats: number;
}

/**
 * Sums of outcomes, each weighted by its age at `time` (epoch milliseconds). `count` is the unweighted number of
 * outcomes.
 */
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
  /** Quality of the work from 0 to 1; undefined if the work was not verified. */
  readonly quality: number | undefined;
  readonly durationMs: number;
}

/**
 * Adds one outcome to the sums, at `now`. A failure counts in full. Each further success from the same source weighs
 * less. If a value exceeds PRIOR, the witness's standing scales the excess. Therefore, outcomes from strangers (see
 * STRANGER_STANDING) never raise the score above 0.55.
 */
export function addOutcome(
  state: BayesianState,
  outcome: Outcome,
  now: number,
  { standing, repeats }: OutcomeWorth,
): BayesianState {
  const { weight, successes, qualityWeight, qualities, speeds } = ageTo(state, now);
  const { success, quality, durationMs } = outcome;
  const outcomeWeight = success ? 1 / (1 + repeats) : 1;
  const weighted = (value: number) =>
    outcomeWeight * (value <= PRIOR ? value : PRIOR + (value - PRIOR) * standing);
  return {
    time: Math.max(now, state.time),
    count: state.count + 1,
    weight: weight + outcomeWeight,
    successes: successes + weighted(success ? 1 : 0),
    qualityWeight: qualityWeight + (quality === undefined ? 0 : outcomeWeight),
    qualities: qualities + (quality === undefined ? 0 : weighted(quality)),
    speeds: speeds + weighted(Math.min(1, QUICK_MS / Math.max(1, durationMs))),
  };
}

/** Returns DelegateOS's scores at a time, from the sums. Each score is from 0 to 1. */
export function bayesianView(state: BayesianState, now: number) {
  const { weight, successes, qualityWeight, qualities, speeds } = ageTo(state, now);
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

function ageTo(state: BayesianState, now: number): BayesianState {
  const remainingShare = 0.5 ** (Math.max(0, now - state.time) / HALF_LIFE_MS);
  const scaled = (value: number) => value * remainingShare;
  return {
    ...state,
    weight: scaled(state.weight),
    successes: scaled(state.successes),
    qualityWeight: scaled(state.qualityWeight),
    qualities: scaled(state.qualities),
    speeds: scaled(state.speeds),
  };
}
