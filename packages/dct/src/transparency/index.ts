/** The functions that verify a transparency log offline. */
export * from "./audit-chain.ts";
export * from "./audit-proof.ts";
export * from "./audit-seal.ts";
export * from "./checkpoint.ts";
export * from "./log-entry.ts";
export * from "./log-head.ts";
export * from "./merkle.ts";
export * from "./root-succession.ts";
export * from "./session-head.ts";
export * from "./tagged.ts";
