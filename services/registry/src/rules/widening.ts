/** A member of a record by which a change permits an agent more than before. */
export interface Widening {
  /** A path in the request message, such as `agent.manifest.allowed_agents["qa-1"]`. */
  readonly path: string;
  /** The previous value, described for people. */
  readonly before: string;
  readonly after: string;
}
