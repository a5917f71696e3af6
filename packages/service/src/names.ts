/** The services that other services call. */
export const SERVICES = ["registry", "tasks", "tokens", "verifier"] as const;
export type ServiceName = (typeof SERVICES)[number];

/** The modules that can listen on separate ports. */
export type ModuleName = ServiceName | "gateway";
