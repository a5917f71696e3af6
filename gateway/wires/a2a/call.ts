import { invalid } from "@depute/core";
import type { WireCall } from "../../edge/wire-call.ts";

/** The agent that a request addresses, and the request's caller. */
export interface A2aCall {
  /** The agent in the request's address. Empty if only the request's `tenant` names the agent. */
  readonly agentId: string;
  readonly call: WireCall;
  /** Whether the request has credentials of any kind. */
  readonly hasCredentials: boolean;
  /** The URIs of the activated extensions. */
  readonly extensions: ReadonlySet<string>;
  /**
   * The sequence of the event after which a subscription resumes. If absent, the stream begins with the events after
   * the task's newest event.
   */
  readonly afterSequence?: bigint;
}

/**
 * Returns the id of the agent that the request's address or its `tenant` names.
 *
 * @throws DeputeError INVALID_REQUEST if they differ, or if both are empty
 */
export function agentOf({ tenant }: { readonly tenant: string }, { agentId }: A2aCall): string {
  if (tenant === "" && agentId === "")
    throw invalid("tenant", "must name the agent, because the address names none");
  if (tenant !== "" && agentId !== "" && tenant !== agentId) {
    throw invalid("tenant", "must be the agent in the address: leave it out");
  }
  return agentId || tenant;
}
