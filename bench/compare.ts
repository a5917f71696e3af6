import type { Result } from "./results.ts";

/** Relative change below which a difference counts as noise, even if the spreads are smaller. */
const MIN_CHANGE = 0.05;
/** Noise of a value that is measured once, whose spread is unknown. */
const UNKNOWN_NOISE = 0.25;

/** Identifies a value across runs. */
export const keyOf = ({ suite, benchmark, name, at }: Result): string =>
  `${suite}\n${benchmark}\n${name}\n${at ?? ""}`;

/**
 * Returns the relative change from an earlier result to a later one, for example 0.2 for a rise of 20 %. Contenders are
 * compared by their ratio to the first contender of the same run, because machines differ. Returns 0 for a change
 * within the noise.
 */
export function changeOf(before: Result, after: Result): number {
  const [old, now] =
    before.ratio !== undefined && after.ratio !== undefined
      ? [before.ratio, after.ratio]
      : [before.value, after.value];
  if (!(old > 0) || !(now > 0)) return 0;
  const change = now / old - 1;
  return Math.abs(change) > noiseOf(before) + noiseOf(after) ? change : 0;
}

function noiseOf({ value, spread }: Result): number {
  if (spread === undefined || value === 0) return UNKNOWN_NOISE / 2;
  return Math.max(MIN_CHANGE / 2, spread / Math.abs(value));
}
