import { durationMs } from "@bufbuild/protobuf/wkt";
import type { Client } from "@connectrpc/connect";
import type { AgentService } from "@depute/contracts/depute/registry/v1/agent_service_pb";
import { delay } from "./retry.ts";

/** Number of heartbeats within the duration of a lease, so that the lease survives a lost heartbeat. */
const BEATS_PER_LEASE = 3;
const LONGEST_BEAT_MS = 10_000;

/**
 * Milliseconds between two heartbeats of an agent without a lease. The answer shows whether the agent has got a lease.
 */
const NO_LEASE_MS = 60_000;

/** Timeout of one heartbeat, in milliseconds. */
const CALL_MS = 10_000;

/** Extends the lease of an agent at the registry until the signal aborts. The promise never rejects. */
export async function keepAgentLease(
  agents: Pick<Client<typeof AgentService>, "heartbeatAgent">,
  agentId: string,
  stopped: AbortSignal,
  onError: (error: unknown) => void,
): Promise<void> {
  let waitMs = LONGEST_BEAT_MS;
  while (!stopped.aborted) {
    try {
      const { agent } = await agents.heartbeatAgent({ agentId }, { signal: stopped, timeoutMs: CALL_MS });
      const leaseMs = agent?.leaseDuration === undefined ? 0 : durationMs(agent.leaseDuration);
      waitMs = leaseMs === 0 ? NO_LEASE_MS : Math.min(leaseMs / BEATS_PER_LEASE, LONGEST_BEAT_MS);
    } catch (error) {
      if (!stopped.aborted) onError(error);
    }
    await delay(waitMs, stopped);
  }
}
