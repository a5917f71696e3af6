import { type Identity, mayActFor } from "@depute/service";
import type { Viewer } from "./rules/visibility.ts";

/** A caller, as a viewer of tasks. */
export interface Caller extends Viewer {
  readonly principal: string;
}

export function asCaller(identity: Identity): Caller {
  return {
    principal: identity.principal,
    mayActFor: (principal) => mayActFor(identity, principal),
  };
}
