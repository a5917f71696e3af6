/** The class of all agents that no setting names. */
export const OTHER_AGENTS = "other";

/**
 * Returns the class of an agent for metrics: the id of its base agent if the operator names that id, otherwise `other`.
 * Metrics therefore show only named ids, and have a bounded number of classes.
 *
 * @param named the ids of DEPUTE_METRICS_AGENT_CLASSES
 */
export function agentClassOf(agentId: string, named: ReadonlySet<string>): string {
  const [base = ""] = agentId.split(":", 1);
  return named.has(base) ? base : OTHER_AGENTS;
}
