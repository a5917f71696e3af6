import { beneficiaryOf } from "../call-origin.ts";
import { cpuTallyKey, quotasKey } from "../call-values.ts";
import { callerKey, LOCAL_PRINCIPAL, organizationOf } from "../caller.ts";
import { currentRequest } from "./current-call.ts";

/** The quota of processor time that one principal and its organization have for verification. */
export interface CpuQuota {
  /** Whether the quota has room. */
  readonly hasRoom: boolean;
  /** @throws DeputeError LIMIT_EXCEEDED if the quota has no room */
  assertRoom(): void;
  /** Counts milliseconds of processor time against the quota. */
  use(ms: number): void;
}

/**
 * Returns the quota for verification in the current call: that of the caller on whose behalf the call is made.
 *
 * @param holder the principal whose quota is used while no caller is proven; empty for none
 * @returns undefined for work without a call, and for callers without quotas
 */
export function cpuQuotaOf(holder = ""): CpuQuota | undefined {
  const request = currentRequest();
  const quotas = request?.contextValues.get(quotasKey);
  if (request === undefined || quotas === undefined) return undefined;
  const { contextValues: values, header: requestHeader } = request;
  const caller = beneficiaryOf({ values, requestHeader });
  const isProven = caller !== "" && caller !== LOCAL_PRINCIPAL;
  const payer = isProven ? caller : holder;
  if (payer === "" || payer === LOCAL_PRINCIPAL) return undefined;
  const named = isProven ? values.get(callerKey)?.organization : undefined;
  const organization = named ?? organizationOf({ values }, payer);
  return {
    get hasRoom() {
      return quotas.waitOf("verification_cpu_ms", payer, organization) === 0;
    },
    assertRoom: () => quotas.assertRoom("verification_cpu_ms", payer, organization),
    use: (ms) => quotas.use("verification_cpu_ms", ms, payer, organization),
  };
}

/**
 * Runs a step of a verification, and adds its processor time to that of the call. {@link chargeCpu} later counts this
 * time against a quota. The step is synchronous, so its duration is its processor time, unless the thread waits for a
 * processor. The system's count of processor time costs 12 us for each step, and has steps of milliseconds.
 */
export function countCpu<T>(step: () => T): T {
  const values = currentRequest()?.contextValues;
  const quotas = values?.get(quotasKey);
  if (values === undefined || quotas === undefined) return step();
  const beginMs = quotas.clock.monotonic();
  try {
    return step();
  } finally {
    values.set(cpuTallyKey, values.get(cpuTallyKey) + quotas.clock.monotonic() - beginMs);
  }
}

/**
 * Counts against a quota the processor time of the current call's verifications that no quota has counted yet.
 *
 * @param holder see {@link cpuQuotaOf}
 */
export function chargeCpu(holder: string): void {
  const values = currentRequest()?.contextValues;
  const ms = values?.get(cpuTallyKey) ?? 0;
  if (values === undefined || ms === 0) return;
  cpuQuotaOf(holder)?.use(ms);
  values.set(cpuTallyKey, 0);
}

/** Whether at least one caller may have used up its quota of processor time. */
export function isCpuScarce(): boolean {
  return currentRequest()?.contextValues.get(quotasKey)?.isScarce("verification_cpu_ms") === true;
}
