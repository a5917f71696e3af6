import type { DomainMetrics } from "@depute/service";
import type { Store } from "@depute/store";
import type { CheckResult } from "./rules/check-result.ts";
import { readLogState } from "./store/log.ts";
import { countOpenReviews } from "./store/reviews.ts";

/** Counts the verdict of a check. */
export type CountCheck = (result: Pick<CheckResult, "passed">) => void;

/** Registers the metrics of checks, reviews and the transparency log. */
export function verifierMetrics(metrics: DomainMetrics, store: Pick<Store, "read">): CountCheck {
  metrics.gauge("depute_log_entries", async () => [[{}, (await store.read(readLogState)).size]]);
  metrics.gauge("depute_reviews_open", async () => [[{}, await store.read(countOpenReviews)]]);
  const checks = metrics.counter("depute_checks_total");
  for (const verdict of ["passed", "failed"]) checks({ verdict }, 0);
  return ({ passed }) => checks({ verdict: passed ? "passed" : "failed" });
}
