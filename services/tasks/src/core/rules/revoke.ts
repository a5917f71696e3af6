import type { Step } from "./advance.ts";
import { failureOf } from "./apply-event.ts";

/** The failure reason of a task that ended because its authority was revoked. */
export const REVOKED = "REVOKED";

/** Returns the step that ends a task whose authority was revoked. */
export function revokedStep(message: string): Step {
  return { payload: { case: "revoked", value: failureOf(REVOKED, message) }, by: "authority" };
}
