/** How far back leases that ended count as having vanished together, milliseconds. */
export const WINDOW_MS = 60_000;
/** Fewer than this vanish together whenever they like. */
export const MIN_VANISHED = 10;
/** More than this share of all leases does not vanish by itself. */
export const TRIP_SHARE = 0.3;
/** The guard lets go when fewer than {@link MIN_VANISHED}, or no more than this share, are still missing. */
export const RELEASE_SHARE = 0.15;
/** The longest that the guard holds, milliseconds: by then those who are missing are gone. */
export const MAX_HOLD_MS = 600_000;
/** How long agents have to find a registry again that was away, milliseconds. */
export const WARM_UP_MS = 60_000;

/** Whether the guard holds, and since when; times are epoch ms. */
export type GuardState =
  | { readonly holds: false }
  | {
      readonly holds: true;
      /** Leases that ended after this count as running. */
      readonly asOf: number;
      readonly since: number;
      /** It holds until then whatever the counts say. */
      readonly until: number;
    };

/** Leases of agents that are not removed, those without an end left out. */
export interface LeaseCounts {
  /** Those that run. */
  readonly running: number;
  /** Those that ended after {@link countedFrom}. */
  readonly vanished: number;
}

export const OPEN: GuardState = { holds: false };

/** From when on ended leases are counted. */
export function countedFrom(state: GuardState, now: number): number {
  return state.holds ? state.asOf : now - WINDOW_MS;
}

/** How many running leases have to be counted before more of them change no judgement. */
export function runningThatMatter(vanished: number): number {
  return vanished < MIN_VANISHED ? 0 : Math.ceil(vanished / Math.min(TRIP_SHARE, RELEASE_SHARE));
}

/**
 * The removal guard. Agents leave discovery by themselves when their lease runs out; when many do so together, it is more
 * likely that they cannot reach the registry than that they are all gone, and a registry that turned empty would stop
 * everybody's work. So when, within a minute, at least 10 leases and more than 30 % of all ran out, the time by which
 * leases are judged stands still a minute ago: those agents are SUSPECT and still found. It goes on when fewer than
 * 10, or no more than 15 %, are missing, and in any case after 10 minutes.
 */
export function judge(state: GuardState, { running, vanished }: LeaseCounts, now: number): GuardState {
  const all = running + vanished;
  if (!state.holds) {
    if (vanished < MIN_VANISHED || vanished <= TRIP_SHARE * all) return OPEN;
    return { holds: true, asOf: now - WINDOW_MS, since: now, until: now };
  }
  if (now < state.until) return state;
  if (now - state.since >= MAX_HOLD_MS) return OPEN;
  return vanished < MIN_VANISHED || vanished <= RELEASE_SHARE * all ? OPEN : state;
}

/**
 * The state to start with. Nobody could extend a lease while the registry was away: what ran out meanwhile is suspect
 * until its agents had a minute to come back.
 *
 * @param lastUp when the registry last ran, epoch ms; undefined at its first start
 */
export function atStart(lastUp: number | undefined, now: number): GuardState {
  if (lastUp === undefined || lastUp >= now) return OPEN;
  return { holds: true, asOf: lastUp, since: now, until: now + WARM_UP_MS };
}
