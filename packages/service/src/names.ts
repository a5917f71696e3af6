/** The services that other services call. */
export const SERVICES = ["registry", "tasks", "tokens", "verifier"] as const;
export type ServiceName = (typeof SERVICES)[number];

/** The modules that can run as servers of their own. */
export type ModuleName = ServiceName | "gateway";
