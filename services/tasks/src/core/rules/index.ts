/** The definitions of the core that need no I/O. Rules of modules import only this file from the core. */
export { failureOf } from "./apply-event.ts";
export { backoffMs } from "./backoff.ts";
export { DELEGATE_RIGHT } from "./delegate-right.ts";
export { requireLease } from "./lease.ts";
export { limitsMs } from "./limits.ts";
export type { TaskRecord } from "./record.ts";
export { isTerminal, stateConflict, statusName } from "./state-machine.ts";
export { checkValue, MAX_VALUE_BYTES, MAX_VALUE_DEPTH } from "./values.ts";
export { isDelegator, isVisible, taskNotFound, type Viewer } from "./visibility.ts";
