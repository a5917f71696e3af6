import { AgentHealth } from "@depute/contracts/depute/registry/v1/agent_pb";

/** The end of a lease that does not end. A time and not an absence, so that one comparison finds who lives. */
export const NO_EXPIRY = Number.MAX_SAFE_INTEGER;

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

/** Whether an agent is alive at `now`; at the millisecond of the expiry it is lost. */
export function healthAt(expireTime: number, now: number): AgentHealth {
  return expireTime > now ? AgentHealth.ALIVE : AgentHealth.LOST;
}
