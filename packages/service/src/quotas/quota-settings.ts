import { defineSettings, type Settings } from "../settings.ts";
import type { QuotaLimits } from "./quotas.ts";

const QUOTAS = "Quotas of one principal in one service";

/** The settings of quotas. */
export const quotaSettings = defineSettings({
  quotaReads: { type: "int", default: 10_000, min: 1, help: "reading calls a second", group: QUOTAS },
  quotaWrites: { type: "int", default: 5_000, min: 1, help: "changing calls a second", group: QUOTAS },
  quotaStreams: { type: "int", default: 500, min: 1, help: "streams opened a second", group: QUOTAS },
  quotaOpenStreams: { type: "int", default: 2_000, min: 1, help: "open streams", group: QUOTAS },
  quotaMints: { type: "int", default: 500, min: 1, help: "tokens made a second", group: QUOTAS },
  quotaVerifications: {
    type: "int",
    default: 5_000,
    min: 1,
    help: "verifications of tokens, outputs and attestations a second",
    group: QUOTAS,
  },
  quotaVerificationCpu: {
    type: "int",
    default: 1_000,
    min: 1,
    help: "milliseconds of the processor a second for verification of tokens, proofs and outputs",
    group: QUOTAS,
  },
  quotaBytes: {
    type: "int",
    default: 67_108_864,
    min: 1,
    help: "bytes a second of requests and answers together",
    group: QUOTAS,
  },
  quotaOpenTasks: {
    type: "int",
    default: 100_000,
    min: 1,
    help: "tasks that have not ended; all replicas count them together",
    group: QUOTAS,
  },
  quotaOrganizationFactor: {
    type: "int",
    default: 4,
    min: 1,
    help: "an organization has this many times the quotas of a principal",
    group: QUOTAS,
  },
  quotaReplicas: {
    type: "int",
    default: 1,
    min: 1,
    help: "number of replicas of a service; each grants its share of the quotas",
    group: QUOTAS,
  },
});

/** Returns the quotas that the settings configure. */
export function quotaLimitsOf(settings: Settings<typeof quotaSettings>): QuotaLimits {
  return {
    perSecond: {
      read: settings.quotaReads,
      write: settings.quotaWrites,
      stream: settings.quotaStreams,
      mint: settings.quotaMints,
      verification: settings.quotaVerifications,
    },
    amounts: {
      bytes: settings.quotaBytes,
      verification_cpu_ms: settings.quotaVerificationCpu,
    },
    openStreams: settings.quotaOpenStreams,
    openTasks: settings.quotaOpenTasks,
    organizationFactor: settings.quotaOrganizationFactor,
    replicas: settings.quotaReplicas,
  };
}
