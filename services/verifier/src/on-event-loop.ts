import { chargeCpu, countCpu, cpuQuotaOf } from "@depute/service";

/**
 * Runs a short check on the event loop, such as the check of a signature. Charges the check's processor time to the
 * caller.
 *
 * @throws DeputeError LIMIT_EXCEEDED if the caller has used its quota of processor time
 */
export function onEventLoop<T>(check: () => T): T {
  cpuQuotaOf()?.assertRoom();
  try {
    return countCpu(check);
  } finally {
    chargeCpu("");
  }
}
