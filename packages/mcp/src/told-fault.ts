import { isObject } from "@depute/core";
import { type BudgetState, Refusal, upstreamFailed, upstreamTooLong } from "./rules/refusal.ts";
import { UpstreamError } from "./upstream-fault.ts";

/** Converts a fault of the server to the error that the caller gets. */
export function toldOf(thrown: unknown, budget: BudgetState): Refusal {
  if (!(thrown instanceof UpstreamError)) return upstreamFailed("INTERNAL", "the call failed", budget);
  const { fault } = thrown;
  switch (fault.kind) {
    case "error": {
      // If nothing was reserved for the call, and the error's data is an object, the client gets the server's own
      // error unchanged.
      if (budget.state === "none" && isObject(fault.data)) {
        return new Refusal(fault.code, fault.message, fault.data as never);
      }
      const data = fault.data === undefined ? {} : { data: fault.data as never };
      return new Refusal(fault.code, fault.message, { ...data, budget: { ...budget } });
    }
    case "timeout":
      return upstreamFailed("DEADLINE_EXCEEDED", fault.detail, budget);
    case "oversize":
      return upstreamTooLong(fault.detail, fault.maxBytes, budget);
    default:
      return upstreamFailed("DEPENDENCY_UNAVAILABLE", `${fault.kind}: ${fault.detail}`, budget);
  }
}
