import { invalid } from "@depute/core";

/** A caller's reference to a capability. */
export interface CapabilityName {
  readonly id: string;
  /** The agent of the capability. If absent, the id alone must identify the capability. */
  readonly agentId?: string;
}

/**
 * Parses `capability` or `agent/capability`, together with an agent id that the request states separately. The first
 * slash is the separator, because ids of capabilities contain no slash.
 *
 * @throws DeputeError INVALID_REQUEST when a part is empty or the two agent ids differ
 */
export function readCapabilityName(name: string, agentId: string): CapabilityName {
  const slash = name.indexOf("/");
  if (slash < 0) return agentId === "" ? { id: name } : { id: name, agentId };
  const owner = name.slice(0, slash);
  const id = name.slice(slash + 1);
  if (owner === "" || id === "") throw invalid("capability_id", "must be `capability` or `agent/capability`");
  if (agentId !== "" && agentId !== owner)
    throw invalid("agent_id", "differs from the agent in capability_id");
  return { id, agentId: owner };
}
