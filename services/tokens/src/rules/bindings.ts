import type { DenialReason } from "@depute/dct";
import { normaliseTarget } from "./target.ts";

/** Where a block counts, an empty list for anywhere; and whether once alone. */
export interface Binding {
  readonly audiences: readonly string[];
  readonly tenants: readonly string[];
  readonly singleUse: boolean;
}

/** Whether a binding holds a block to anything. */
export function isBinding({ audiences, tenants, singleUse }: Binding): boolean {
  return audiences.length > 0 || tenants.length > 0 || singleUse;
}

/** What is known of a call. */
export interface CallPlace {
  /** The address that was called; empty where no proof came with it. */
  readonly target: string;
  readonly tenant: string;
}

/**
 * Why a call is not where every block of a chain counts, undefined when it is. Each block's binding is looked at by
 * itself, so that one below cannot widen one above.
 */
export function outOfPlace(
  bindings: readonly Binding[],
  { target, tenant }: CallPlace,
): DenialReason | undefined {
  for (const { audiences, tenants } of bindings) {
    if (audiences.length > 0 && !audiences.some((audience) => isBelow(target, audience))) {
      return { type: "capability_not_granted", detail: "audience" };
    }
    if (tenants.length > 0 && !tenants.includes(tenant)) {
      return { type: "capability_not_granted", detail: "tenant" };
    }
  }
  return undefined;
}

/** Whether an address is another or lies below it, compared by whole segments after the normalisations of RFC 3986. */
export function isBelow(target: string, audience: string): boolean {
  const [inner, outer] = [normaliseTarget(target), normaliseTarget(audience)];
  if (inner === undefined || outer === undefined) return false;
  return inner === outer || inner.startsWith(outer.endsWith("/") ? outer : `${outer}/`);
}
