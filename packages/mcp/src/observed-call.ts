import type { Clock } from "@depute/core";
import {
  DENIED,
  HEADER_MISMATCH,
  INVALID_PARAMS,
  LIMIT_REACHED,
  MISSING_CAPABILITY,
  Refusal,
} from "./rules/refusal.ts";

/**
 * How a call ended.
 * - `answered`: the server answered.
 * - `tool_error`: the result reports an error of the tool, or arguments that do not fit its schema.
 * - `denied`: the token, or the map, does not allow the call.
 * - `limited`: a limit is reached.
 * - `refused`: the request itself is at fault.
 * - `failed`: the server failed, or the platform could not decide.
 */
export type ObservedOutcome = "answered" | "tool_error" | "denied" | "limited" | "refused" | "failed";

/** The end of a request, for metrics and logs. */
export interface ObservedEnd {
  readonly outcome: ObservedOutcome;
  /** Milliseconds from the arrival of the request to its response. */
  readonly ms: number;
}

/** A call that has ended. */
export interface ObservedCall extends ObservedEnd {
  /** The name of the tool or method; empty if the map has no rule for it. */
  readonly name: string;
}

/** A request on the server's tasks that has ended. */
export interface ObservedTaskRequest extends ObservedEnd {
  /** The method, such as `tasks/get`. */
  readonly method: string;
  /** The tool that began the task; empty for a list of tasks and for an unknown task. */
  readonly tool: string;
}

const OUTCOMES: ReadonlyMap<number, ObservedOutcome> = new Map([
  [DENIED, "denied"],
  [LIMIT_REACHED, "limited"],
  [INVALID_PARAMS, "refused"],
  [HEADER_MISMATCH, "refused"],
  [MISSING_CAPABILITY, "refused"],
]);

/** Runs a request, and reports its end. */
export async function observed(
  { clock, report }: { readonly clock: Clock; readonly report: (end: ObservedEnd) => void },
  run: () => Promise<Record<string, unknown>>,
): Promise<Record<string, unknown>> {
  const begin = clock.monotonic();
  const ended = (outcome: ObservedOutcome) => report({ outcome, ms: clock.monotonic() - begin });
  try {
    const result = await run();
    ended(result.isError === true ? "tool_error" : "answered");
    return result;
  } catch (thrown) {
    ended(outcomeOf(thrown));
    throw thrown;
  }
}

/** Returns the outcome of a call that threw this error. */
function outcomeOf(thrown: unknown): ObservedOutcome {
  return (thrown instanceof Refusal ? OUTCOMES.get(thrown.code) : undefined) ?? "failed";
}
