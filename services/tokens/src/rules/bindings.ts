import type { DenialReason } from "@depute/dct";
import { normaliseTarget } from "./target.ts";

/**
 * Restricts where a block is valid: for which audiences and tenants, and whether for one use only. An empty list
 * restricts nothing.
 */
export interface Binding {
  readonly audiences: readonly string[];
  readonly tenants: readonly string[];
  readonly singleUse: boolean;
}

/** Whether a binding has at least one restriction. */
export function isBinding({ audiences, tenants, singleUse }: Binding): boolean {
  return audiences.length > 0 || tenants.length > 0 || singleUse;
}

/** The facts about a call that a binding may restrict. */
export interface CallPlace {
  /** The URL of the call, from the call's proof; empty for a call without a proof. */
  readonly target: string;
  readonly tenant: string;
}

/**
 * Returns the denial if a call is outside the binding of any block; undefined otherwise. The bindings of all blocks
 * apply, so a lower block cannot widen the binding of a higher block.
 */
export function bindingDenial(
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

/**
 * Whether a URL equals the audience or is below it. Compares whole path segments, after the normalization of RFC 3986.
 */
export function isBelow(target: string, audience: string): boolean {
  const [inner, outer] = [normaliseTarget(target), normaliseTarget(audience)];
  if (inner === undefined || outer === undefined) return false;
  return inner === outer || inner.startsWith(outer.endsWith("/") ? outer : `${outer}/`);
}
