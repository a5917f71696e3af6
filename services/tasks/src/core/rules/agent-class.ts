/** The class of each agent whose base agent is not in DEPUTE_METRICS_AGENT_CLASSES. */
export const OTHER_AGENTS = "other";

/**
 * Returns the class of an agent for metrics. If the settings name the agent's base agent, the class is the base agent's
 * id: the part of `agentId` before the first `:`. Otherwise the class is `other`. So metrics have a bounded number of
 * classes, and show only ids that the settings name.
 *
 * @param named the ids of DEPUTE_METRICS_AGENT_CLASSES
 */
export function agentClassOf(agentId: string, named: ReadonlySet<string>): string {
  const [base = ""] = agentId.split(":", 1);
  return named.has(base) ? base : OTHER_AGENTS;
}
