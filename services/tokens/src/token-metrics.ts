import type { Clock } from "@depute/core";
import type { DomainMetrics } from "@depute/service";
import type { Store } from "@depute/store";
import type { RevocationState } from "./revocation-state.ts";
import type { Decision } from "./rules/audit-record.ts";
import { readHeld } from "./store/spend-rows.ts";

/** Maximum number of distinct reasons in the counter of denials. Further reasons count as `other`. */
const MAX_REASONS = 64;

/** Counts denials, and the microcents that are reserved or charged. */
export interface TokenMeter {
  /** Counts a decision if it is a denial. */
  decided(decision: Pick<Decision, "decision" | "reason">): void;
  /** Counts the microcents that a reservation has durably taken from budgets. */
  reserved(microcents: number): void;
  /** Counts the microcents that a settlement has durably charged. */
  charged(microcents: number): void;
}

export interface TokenMetricsOptions {
  readonly store: Pick<Store, "read">;
  readonly state: Pick<RevocationState, "sequence" | "age">;
  readonly clock: Clock;
}

/** Registers the metrics of tokens, revocations and spend. */
export function tokenMetrics(
  metrics: DomainMetrics,
  { store, state, clock }: TokenMetricsOptions,
): TokenMeter {
  metrics.gauge("depute_revocations", async () => [[{}, state.sequence]]);
  metrics.gauge("depute_revocations_staleness_seconds", async () => {
    const ageMs = state.age(clock.now());
    return Number.isFinite(ageMs) ? [[{}, Math.max(0, ageMs) / 1000]] : [];
  });
  metrics.gauge("depute_spend_held_microcents", async () => [
    [{}, await store.read((tx) => readHeld(tx, clock.now()))],
  ]);
  const denials = metrics.counter("depute_denials_total");
  const reserved = metrics.counter("depute_spend_reserved_microcents_total");
  const charged = metrics.counter("depute_spend_charged_microcents_total");
  const reasons = new Set<string>();
  return {
    decided({ decision, reason }) {
      if (decision !== "denied") return;
      // The text after the colon states where the fault is. This text has too many values for a label of a metric.
      const [kind = ""] = reason.split(":", 1);
      if (reasons.size < MAX_REASONS) reasons.add(kind);
      denials({ reason: reasons.has(kind) ? kind : "other" });
    },
    reserved: (microcents) => reserved({}, microcents),
    charged: (microcents) => charged({}, microcents),
  };
}
