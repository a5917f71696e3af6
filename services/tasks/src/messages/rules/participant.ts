import type { AgentManifest } from "@depute/contracts/cap/v1/manifest_pb";

/** The ids of CAP's participants that are not agents. */
export const USER = "user";
export const ORCHESTRATOR = "orchestrator";

/** The sender id of the platform's own messages. No participant has this id. */
export const PLATFORM = "depute";

/** A participant: an agent, an instance of an agent, or a role. */
export interface Participant {
  readonly id: string;
  /**
   * The participant's key. Without a key, e.g. for a role: the caller's principal for the sender, and empty for any
   * other participant.
   */
  readonly principal: string;
  /** The agent's manifest; undefined for a role, and for an agent without a manifest. */
  readonly manifest: AgentManifest | undefined;
}

/** Whether an id is the id of a role. */
export function isRole(id: string): boolean {
  return id === USER || id === ORCHESTRATOR;
}

/** Returns the id of the agent that an id names, without the suffix of an instance. (CAP "Parallelism") */
export function baseOf(id: string): string {
  const colon = id.indexOf(":");
  return colon < 0 ? id : id.slice(0, colon);
}

/** Returns the overseer that must approve a participant's results; empty for none. (CAP, `overseer`) */
export function overseerOf({ manifest }: Pick<Participant, "manifest">): string {
  return manifest?.overseer.case === "overseerId" ? manifest.overseer.value : "";
}
