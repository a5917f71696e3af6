/** Parts of transports, for programs of the platform that make their own. */
export { SessionManager } from "./session-manager.ts";
export { failuresAsUnavailable } from "./transport-failures.ts";
