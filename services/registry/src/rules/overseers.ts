import { DeputeError, ErrorReason } from "@depute/core";
import { baseOf } from "./registration.ts";

/**
 * Maximum accepted length of a chain of overseers, with the agent itself. A longer chain gets the reason of a cycle.
 */
export const MAX_OVERSEERS = 64;

/**
 * Refuses a chain of overseers that leads back to the agent. With such a chain, the agent's results would wait for
 * its own approval. An overseer that is an instance counts as its base. (CAP "Quality control")
 *
 * @param overseerOf returns the registered overseer of an agent; undefined if the agent is unknown or has none
 * @throws DeputeError INVALID_REQUEST
 */
export async function checkOverseers(
  id: string,
  overseer: string | undefined,
  overseerOf: (id: string) => Promise<string | undefined>,
): Promise<void> {
  const self = baseOf(id) ?? id;
  const chain = [self];
  for (let next = overseer; next !== undefined; next = await overseerOf(next)) {
    next = baseOf(next) ?? next;
    chain.push(next);
    if (next === self) throw refused(`leads back to the agent: ${chain.join(" -> ")}`);
    if (chain.length > MAX_OVERSEERS) throw refused(`has more than ${MAX_OVERSEERS} overseers above it`);
  }
}

function refused(description: string): DeputeError {
  return new DeputeError(ErrorReason.INVALID_REQUEST, `agent.manifest.overseer: ${description}`, {
    violations: [{ field: "agent.manifest.overseer", description, reason: "agent.manifest.overseer.cycle" }],
  });
}
