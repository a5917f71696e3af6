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

/** Returns the quotas of the settings. */
export function quotaLimitsOf(settings: Settings<typeof quotaSettings>): QuotaLimits {
  return {
    perSecond: {
      read: settings.quotaReads,
      write: settings.quotaWrites,
      stream: settings.quotaStreams,
      mint: settings.quotaMints,
      verification: settings.quotaVerifications,
    },
    openStreams: settings.quotaOpenStreams,
    organizationFactor: settings.quotaOrganizationFactor,
    replicas: settings.quotaReplicas,
  };
}
