/** The period over which the guard counts ended leases, in milliseconds. */
export const WINDOW_MS = 60_000;
/** Minimum number of leases that must end within the period before the guard trips. */
export const MIN_VANISHED = 10;
/** The guard trips if the ended leases are more than this share of all leases. */
export const TRIP_SHARE = 0.3;
/**
 * The largest share of missing leases at which the guard releases. The guard also releases when fewer than
 * `MIN_VANISHED` leases are missing. A missing lease has ended without a new extension.
 */
export const RELEASE_SHARE = 0.15;
/** Maximum time for which the guard holds, in milliseconds. After this time, missing agents count as lost. */
export const MAX_HOLD_MS = 600_000;
/** Time for agents to reconnect after a restart of the registry, in milliseconds. */
export const WARM_UP_MS = 60_000;

/** The state of the guard. Times are epoch milliseconds. */
export type GuardState =
  | { readonly holds: false }
  | {
      readonly holds: true;
      /** A lease that ends after this time counts as running. */
      readonly asOf: number;
      readonly since: number;
      /** Before this time the guard does not release, whatever the counts are. */
      readonly until: number;
    };

/** Counts of leases that have an end, without the leases of removed agents. */
export interface LeaseCounts {
  /** Number of leases that still run. */
  readonly running: number;
  /** Number of leases that ended after {@link countStart}. */
  readonly vanished: number;
}

export const OPEN: GuardState = { holds: false };

/** Returns the start of the interval in which the guard counts ended leases. */
export function countStart(state: GuardState, now: number): number {
  return state.holds ? state.asOf : now - WINDOW_MS;
}

/**
 * Returns the number of running leases at which the count may stop, because a higher number would not change the
 * decision.
 */
export function maxRunningCounted(vanished: number): number {
  return vanished < MIN_VANISHED ? 0 : Math.ceil(vanished / Math.min(TRIP_SHARE, RELEASE_SHARE));
}

/**
 * Returns the next state of the removal guard. Agents leave discovery when their lease expires. When many leases expire
 * together, a network fault is likelier than the loss of all agents. An empty registry would stop all work. So the
 * guard trips when, within a minute, at least 10 leases and more than 30 % of all expire. The guard then fixes the
 * reference time at one minute earlier, so the agents become SUSPECT and stay discoverable. The guard releases when
 * fewer than 10 leases, or at most 15 % of all, are missing. After 10 minutes the guard releases in any case.
 */
export function nextGuardState(
  state: GuardState,
  { running, vanished }: LeaseCounts,
  now: number,
): GuardState {
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
 * Returns the initial state. Agents could not extend their leases while the registry was down. Agents whose leases
 * expired meanwhile are SUSPECT for one minute, in which they can reconnect.
 *
 * @param lastUp the time at which the registry last ran, epoch milliseconds; undefined at its first start
 */
export function initialGuardState(lastUp: number | undefined, now: number): GuardState {
  if (lastUp === undefined || lastUp >= now) return OPEN;
  return { holds: true, asOf: lastUp, since: now, until: now + WARM_UP_MS };
}
