/** One place where a change of an agent gives it more than before. */
export interface Widening {
  /** From the request message: `agent.manifest.allowed_agents["qa-1"]`. */
  readonly path: string;
  /** In words, for a person. */
  readonly before: string;
  readonly after: string;
}
