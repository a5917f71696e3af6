import type { Admitted } from "./gate.ts";
import { DENIED, Refusal } from "./rules/refusal.ts";

/** A decision on the authority of one call. */
export interface CallDecision {
  /** The MCP method, such as `tools/call`. */
  readonly method: string;
  /** The name of the tool, resource or prompt. */
  readonly name: string;
  /** The principal that holds the token; empty without a proven token. */
  readonly principal: string;
  readonly isAllowed: boolean;
  /** The reason of a denial; empty for an allowed call. */
  readonly reason: string;
}

/**
 * Decides on a call, and reports the decision before the call is made.
 *
 * @param report if it throws, the call is refused
 * @param decide gets a function that notes the holder of the token for the report
 * @throws the errors of `decide` and of `report`
 */
export async function decided(
  about: Pick<CallDecision, "method" | "name">,
  report: (decision: CallDecision) => void = () => {},
  decide: (note: (admitted: Admitted) => Admitted) => Promise<Admitted>,
): Promise<Admitted> {
  let principal = "";
  const note = (admitted: Admitted) => {
    principal = admitted.principal ?? "";
    return admitted;
  };
  let admitted: Admitted;
  try {
    admitted = await decide(note);
  } catch (thrown) {
    if (thrown instanceof Refusal && thrown.code === DENIED) {
      const reason = String(thrown.data.type ?? "denied");
      report({ ...about, principal, isAllowed: false, reason });
    }
    throw thrown;
  }
  report({ ...about, principal, isAllowed: true, reason: "" });
  return admitted;
}
