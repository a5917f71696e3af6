import { pointAt } from "./pointer.ts";
import type { CostRule } from "./tool-map.ts";

/** The outcome of a call, which decides the charge. */
export type CallOutcome =
  /** The server answered. */
  | { readonly kind: "answered"; readonly result: unknown }
  /** The call may have been carried out, or not. */
  | { readonly kind: "unknown" }
  /** The call never reached the server. */
  | { readonly kind: "unsent" };

/**
 * The settlement of a reservation. `amount` is in microcents; undefined means that the whole reservation is charged.
 */
export type Settlement =
  | { readonly kind: "commit"; readonly amount: number | undefined }
  | { readonly kind: "release" };

/**
 * Decides how much of a call's reservation is charged. The whole reservation is charged unless a lower cost is known. A
 * call is free only if it certainly did not reach the server.
 */
export function settlementOf({ most, reported }: CostRule, outcome: CallOutcome): Settlement {
  if (outcome.kind === "unsent") return { kind: "release" };
  if (outcome.kind === "unknown" || reported === undefined) return { kind: "commit", amount: undefined };
  const reportedCost = pointAt(outcome.result, reported);
  const isCost =
    Number.isSafeInteger(reportedCost) && (reportedCost as number) >= 0 && (reportedCost as number) <= most;
  return { kind: "commit", amount: isCost ? (reportedCost as number) : undefined };
}
