import { isObject } from "@depute/core";

/** The state of a task at an A2A agent, as the platform stores it. */
export interface A2aState {
  /** The agent's id of the task. */
  readonly taskId: string;
  /** The agent's id of the conversation; empty for none. */
  readonly contextId: string;
  /**
   * Number of the delegator's answers from before the task began at this agent, plus those that the agent has
   * acknowledged.
   */
  readonly answers: number;
}

/** Reads a stored state. Returns undefined for an empty text, which means that the agent has not responded yet. */
export function readA2aState(text: string): A2aState | undefined {
  if (text === "") return undefined;
  const state: unknown = JSON.parse(text);
  if (!isObject(state)) return undefined;
  const { taskId, contextId, answers } = state;
  if (typeof taskId !== "string" || typeof contextId !== "string" || !Number.isSafeInteger(answers)) {
    return undefined;
  }
  return { taskId, contextId, answers: Number(answers) };
}
