import type { CountedCall } from "./call-limiter.ts";
import type { Admitted } from "./gate.ts";

/** An admitted call, the name of its tool or method, and its entry in the call limiter. */
export interface AdmittedCall extends Admitted {
  readonly name: string;
  readonly counted: CountedCall;
}
