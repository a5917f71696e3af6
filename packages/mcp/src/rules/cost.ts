import { pointAt } from "./pointer.ts";
import type { CostRule } from "./tool-map.ts";

/** What became of a call, as far as money is concerned. */
export type CallOutcome =
  /** The server answered. */
  | { readonly kind: "answered"; readonly result: unknown }
  /** Nobody knows: it may have been carried out. */
  | { readonly kind: "unknown" }
  /** The call never reached the server. */
  | { readonly kind: "unsent" };

/** What is done with a reservation. `amount` in microcents; undefined: all of it. */
export type Settlement =
  | { readonly kind: "commit"; readonly amount: number | undefined }
  | { readonly kind: "release" };

/**
 * How a call's reservation is settled. What is not known to have cost less is charged in full; only a call that
 * certainly was not made costs nothing.
 */
export function settlementOf({ most, reported }: CostRule, outcome: CallOutcome): Settlement {
  if (outcome.kind === "unsent") return { kind: "release" };
  if (outcome.kind === "unknown" || reported === undefined) return { kind: "commit", amount: undefined };
  const said = pointAt(outcome.result, reported);
  const isCost = Number.isSafeInteger(said) && (said as number) >= 0 && (said as number) <= most;
  return { kind: "commit", amount: isCost ? (said as number) : undefined };
}
