/** The services that others call. */
export const SERVICES = ["registry", "tasks", "tokens", "verifier"] as const;
export type ServiceName = (typeof SERVICES)[number];

/** Everything that runs as a server of its own. */
export type ModuleName = ServiceName | "gateway";
