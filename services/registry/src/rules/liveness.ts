import { AgentHealth } from "@depute/contracts/depute/registry/v1/agent_pb";

/** The end of a lease that does not end. A time and not an absence, so that one comparison finds who lives. */
export const NO_EXPIRY = Number.MAX_SAFE_INTEGER;

/** By what time leases are judged; epoch ms. */
export interface LivenessView {
  readonly now: number;
  /** A lease that ends after this counts as running: `now`, or earlier while the removal guard holds. */
  readonly asOf: number;
}

/**
 * When a lease runs out that was last extended at `heartbeatTime`.
 *
 * @param heartbeatTime epoch ms
 * @param leaseMs milliseconds; 0 for an agent that asked for no lease
 * @returns epoch ms; {@link NO_EXPIRY} without a lease
 */
export function leaseExpiry(heartbeatTime: number, leaseMs: number): number {
  return leaseMs === 0 ? NO_EXPIRY : heartbeatTime + leaseMs;
}

/** Whether an agent is alive; at the millisecond of the expiry it is lost, or suspect while the guard holds. */
export function healthAt(expireTime: number, { now, asOf }: LivenessView): AgentHealth {
  if (expireTime > now) return AgentHealth.ALIVE;
  return expireTime > asOf ? AgentHealth.SUSPECT : AgentHealth.LOST;
}
