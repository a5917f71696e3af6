/** The class of all agents that no setting names. */
export const OTHER_AGENTS = "other";

/**
 * Returns the class of an agent for metrics. The class is the id of the agent's base agent, which is the part of the id
 * before the first `:`, if the settings name that id. Otherwise the class is `other`. So metrics have a bounded number
 * of classes, and show only ids that the settings name.
 */
export function agentClassOf(agentId: string, named: ReadonlySet<string>): string {
  const [base = ""] = agentId.split(":", 1);
  return named.has(base) ? base : OTHER_AGENTS;
}
