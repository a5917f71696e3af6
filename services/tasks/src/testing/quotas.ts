import { ManualClock } from "@depute/core";
import { Quotas, type ServiceDeps } from "@depute/service";

/** Returns quotas with a maximum number of open tasks per principal. An organization may have twice as many. */
export function openTaskQuotas(openTasks: number): ServiceDeps["quotas"] {
  const most = Number.MAX_SAFE_INTEGER;
  const limits = {
    perSecond: { read: most, write: most, stream: most, mint: most, verification: most },
    amounts: { bytes: most, verification_cpu_ms: most },
    ...{ openStreams: most, openTasks, organizationFactor: 2, replicas: 1 },
  };
  return new Quotas(limits, { clock: new ManualClock() });
}
