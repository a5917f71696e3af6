import type { AgentManifest } from "@depute/contracts/cap/v1/manifest_pb";

/** CAP's participants that are no agents. */
export const USER = "user";
export const ORCHESTRATOR = "orchestrator";

/** Who speaks where the platform does. No participant has the id. */
export const PLATFORM = "depute";

/** Who takes part: an agent, an instance of one, or a role. */
export interface Participant {
  readonly id: string;
  /** Its key; for a role, and an agent without a key, the principal that the caller was found to be. */
  readonly principal: string;
  /** Undefined for a role, and for an agent without one. */
  readonly manifest: AgentManifest | undefined;
}

/** Whether an id is a role's. */
export function isRole(id: string): boolean {
  return id === USER || id === ORCHESTRATOR;
}

/** The agent that an id is, or is an instance of. (CAP "Parallelism") */
export function baseOf(id: string): string {
  const colon = id.indexOf(":");
  return colon < 0 ? id : id.slice(0, colon);
}

/** Who has to approve what a participant completes; empty for nobody. (CAP, `overseer`) */
export function overseerOf({ manifest }: Pick<Participant, "manifest">): string {
  return manifest?.overseer.case === "overseerId" ? manifest.overseer.value : "";
}
