/** This entry point serves the services and the command line of Depute, which create their transports themselves. */
export { SessionManager } from "./session-manager.ts";
export { failuresAsUnavailable } from "./transport-failures.ts";
