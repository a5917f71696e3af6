import type { Step } from "./advance.ts";
import { failureOf } from "./apply-event.ts";

/** The failure's word when authority was taken back. */
export const REVOKED = "REVOKED";

/** The step by which a task ends whose authority was taken back. */
export function revokedStep(message: string): Step {
  return { payload: { case: "revoked", value: failureOf(REVOKED, message) }, by: "authority" };
}
