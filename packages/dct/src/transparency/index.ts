/** What a third party needs to check a transparency log offline. */
export * from "./log-entry.ts";
export * from "./log-head.ts";
export * from "./merkle.ts";
export * from "./session-head.ts";
