import { beneficiaryOf } from "../call-origin.ts";
import { cpuTallyKey, quotasKey } from "../call-values.ts";
import { callerKey, LOCAL_PRINCIPAL, organizationOf } from "../caller.ts";
import { currentRequest } from "./current-call.ts";

/** The quota of processor time that one principal and its organization have for verification. */
export interface CpuQuota {
  /** Whether the quota has room. */
  readonly hasRoom: boolean;
  /** @throws DeputeError LIMIT_EXCEEDED without room */
  assertRoom(): void;
  /** Counts milliseconds of processor time. */
  use(ms: number): void;
}

/**
 * Returns the quota that pays for verification in the current call: the quota of the caller on whose behalf the call is
 * made.
 *
 * @param holder the principal that pays while the caller is not proven; empty for none
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

/** Runs a step of a verification. {@link chargeCpu} charges its processor time. */
export function countCpu<T>(step: () => T): T {
  const values = currentRequest()?.contextValues;
  const quotas = values?.get(quotasKey);
  if (values === undefined || quotas === undefined) return step();
  const beginMs = quotas.cpuMs();
  try {
    return step();
  } finally {
    values.set(cpuTallyKey, values.get(cpuTallyKey) + quotas.cpuMs() - beginMs);
  }
}

/**
 * Charges the processor time that the current call has spent on verification and that no quota has counted yet.
 *
 * @param holder as for {@link cpuQuotaOf}
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
