import type { Clock } from "@depute/core";
import type { DomainMetrics } from "../domain-metrics.ts";
import { type QuotaLimits, Quotas } from "./quotas.ts";

/** Creates quotas with metrics of their refusals and of the processor time that they count. */
export function countedQuotas(limits: QuotaLimits, clock: Clock, metrics: DomainMetrics): Quotas {
  const refused = metrics.counter("depute_quota_refusals_total");
  const used = metrics.counter("depute_verification_cpu_seconds_total");
  return new Quotas(limits, {
    clock,
    onRefusal: (limit) => refused({ limit }),
    onCpu: (seconds) => used({}, seconds),
  });
}
