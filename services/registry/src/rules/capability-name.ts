import { invalid } from "@depute/core";

/** Which capability a caller means. */
export interface CapabilityName {
  readonly id: string;
  /** Whose it is; absent when the id alone has to be enough. */
  readonly agentId?: string;
}

/**
 * Reads `capability` or `agent/capability`, and the agent that was named beside it. Capability ids hold no slash, so the
 * first one separates.
 *
 * @throws DeputeError INVALID_REQUEST when a part is empty or two different agents are named
 */
export function readCapabilityName(name: string, agentId: string): CapabilityName {
  const slash = name.indexOf("/");
  if (slash < 0) return agentId === "" ? { id: name } : { id: name, agentId };
  const owner = name.slice(0, slash);
  const id = name.slice(slash + 1);
  if (owner === "" || id === "") throw invalid("capability_id", "must be `capability` or `agent/capability`");
  if (agentId !== "" && agentId !== owner)
    throw invalid("agent_id", "is another agent than capability_id names");
  return { id, agentId: owner };
}
