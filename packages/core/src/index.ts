export * from "./base64url.ts";
export * from "./canonical.ts";
export * from "./clock.ts";
export * from "./contract-rules.ts";
export * from "./errors.ts";
export * from "./ids.ts";
export * from "./page-token.ts";
export * from "./times.ts";
