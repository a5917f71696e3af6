import { DENIED, Refusal } from "./rules/refusal.ts";

/** A decision on the authority of one request. */
export interface CallDecision {
  /** The MCP method, such as `tools/call` or `tasks/cancel`. */
  readonly method: string;
  /**
   * The name of the tool or, for another request that needs a rule, the method, such as `resources/read`. For a
   * request on a task, the name of the task's tool; empty if the tool is unknown. Also empty for a subscription.
   */
  readonly name: string;
  /** The principal that holds the token; empty if no token was proved. */
  readonly principal: string;
  /** The revocation ids of the token's blocks, beginning with the authority block; empty if no token was proved. */
  readonly blocks: readonly string[];
  /**
   * The principal that the request's login (Bearer token or client certificate) proves; absent if the request has no
   * login.
   */
  readonly login?: string;
  readonly isAllowed: boolean;
  /** Why the request was denied, such as `capability_not_granted`; empty for an allowed request. */
  readonly reason: string;
}

/** Receives a decision before the request is forwarded. If the function throws, the request is refused. */
export type DecisionReport = (decision: CallDecision) => void;

/** The facts that the decision has established so far. The report contains them. */
export interface DecisionFacts {
  name: string;
  /** The holder of the token, and the ids of the token's blocks; both empty until the token is proved. */
  principal: string;
  blocks: readonly string[];
}

interface Requested {
  readonly method: string;
  readonly name?: string;
  /**
   * The principal that the request's login (Bearer token or client certificate) proves; absent or empty if the request
   * has no login.
   */
  readonly login?: string | undefined;
}

/**
 * Decides on a request, and reports the decision before the request is forwarded. If `decide` throws an error other
 * than a denial, there is no report.
 *
 * @param decide makes the decision, and writes the established facts into `facts`
 * @throws the errors of `decide` and of `report`
 */
export async function decided<T>(
  { method, name = "", login = "" }: Requested,
  report: DecisionReport = () => {},
  decide: (facts: DecisionFacts) => Promise<T>,
): Promise<T> {
  const facts: DecisionFacts = { name, principal: "", blocks: [] };
  const about = { method, ...(login !== "" && { login }) };
  let result: T;
  try {
    result = await decide(facts);
  } catch (thrown) {
    if (thrown instanceof Refusal && thrown.code === DENIED) {
      const reason = String(thrown.data.type ?? "denied");
      report({ ...about, ...facts, isAllowed: false, reason });
    }
    throw thrown;
  }
  report({ ...about, ...facts, isAllowed: true, reason: "" });
  return result;
}

/**
 * Returns a report function that forwards only denials to `report`. The proxy uses it for requests that change nothing.
 */
export function denialsOf(report: DecisionReport): DecisionReport {
  return (decision) => {
    if (!decision.isAllowed) report(decision);
  };
}
