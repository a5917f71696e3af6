import { AgentHealth } from "@depute/contracts/depute/registry/v1/agent_pb";

/** The time of the last heartbeat of an agent that has sent none. */
export const NO_HEARTBEAT = 0;

/** The end of a lease that does not end. A time and not an absence, so that one comparison finds who lives. */
export const NO_EXPIRY = Number.MAX_SAFE_INTEGER;

/** By what time leases are judged; epoch ms. */
export interface LivenessView {
  readonly now: number;
  /** A lease that ends after this counts as running: `now`, or earlier while the removal guard holds. */
  readonly asOf: number;
}

/**
 * When a lease runs out that was last extended at `extendedTime`, by the registration or a heartbeat.
 *
 * @param extendedTime epoch ms
 * @param leaseMs milliseconds; 0 for an agent that asked for no lease
 * @returns epoch ms; {@link NO_EXPIRY} without a lease
 */
export function leaseExpiry(extendedTime: number, leaseMs: number): number {
  return leaseMs === 0 ? NO_EXPIRY : extendedTime + leaseMs;
}

/**
 * What is known of an agent's life. At the millisecond of the expiry it is lost, or suspect while the guard holds.
 *
 * @param heartbeatTime epoch ms; {@link NO_HEARTBEAT} for none
 */
export function healthAt(
  { expireTime, heartbeatTime }: { readonly expireTime: number; readonly heartbeatTime: number },
  { now, asOf }: LivenessView,
): AgentHealth {
  if (expireTime > now) return heartbeatTime === NO_HEARTBEAT ? AgentHealth.UNKNOWN : AgentHealth.ALIVE;
  return expireTime > asOf ? AgentHealth.SUSPECT : AgentHealth.LOST;
}
