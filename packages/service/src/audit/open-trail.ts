import { openStore } from "@depute/store";
import type { CommonSettings } from "../common-settings.ts";
import type { ServiceModule } from "../module.ts";
import { explainStore, type StorePlace, storeAt } from "../store-place.ts";
import { AuditTrail, type AuditTrailOptions } from "./audit-trail.ts";
import { migrations } from "./outbox-rows.ts";

/**
 * Opens the audit trail of a module, with its store of undelivered decisions.
 *
 * @param trails receives the opened trail, so that the host can close the trail
 * @returns undefined for a module that needs no trail
 * @throws the error that `explainStore` returns for a store that did not open
 */
export async function openTrailOf(
  { name, audit }: ServiceModule,
  common: CommonSettings,
  trails: AuditTrail[],
  { onState, ...options }: Omit<AuditTrailOptions, "store"> & Pick<StorePlace, "onState">,
): Promise<AuditTrail | undefined> {
  if (audit === undefined) return undefined;
  const { timers, clock, log } = options;
  const place = {
    ...storeAt(common, `audit_${name}`),
    ...{ isShared: common.replicated, timers, clock, migrations },
    ...(onState && { onState }),
    onError: (error: unknown, what: string) => log.error({ err: error }, what),
  };
  const opening = openStore(place);
  const store = await opening.catch((error) => Promise.reject(explainStore(error, name, common)));
  const trail = new AuditTrail({ ...options, store });
  trails.push(trail);
  await trail.start();
  return trail;
}

/** Returns the option `audit` of `serverInterceptors` for a module; empty without a trail. */
export function auditOf({ audit }: ServiceModule, trail: AuditTrail | undefined) {
  if (audit === undefined || trail === undefined) return {};
  return { audit: { trail, quiet: new Set(audit.quiet), isForwarding: audit.isForwarding === true } };
}
