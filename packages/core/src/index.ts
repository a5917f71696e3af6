export { A2A_EXTENSIONS, type A2aExtension } from "./a2a-extensions.ts";
export {
  A2A_BINDINGS,
  type A2aBinding,
  type A2aInterface,
  a2aInterfaceOf,
  MAX_A2A_INTERFACES,
} from "./a2a-interface.ts";
export * from "./bytes-as-text.ts";
export * from "./canonical.ts";
export * from "./cap-codes.ts";
export * from "./clock.ts";
export { type IdRule, idRule, RELAXED_ID, regexMatch, setIdRule } from "./contract-patterns.ts";
export * from "./contract-rules.ts";
export { threadCpuMs } from "./cpu-time.ts";
export * from "./detail.ts";
export * from "./errors.ts";
export * from "./ids.ts";
export * from "./independence.ts";
export * from "./json.ts";
export * from "./json-formats.ts";
export * from "./organization-data.ts";
export * from "./ownership.ts";
export * from "./page-token.ts";
export { pause } from "./pause.ts";
export { type BrokenRule, brokenRulesByProtovalidate } from "./protovalidate-rules.ts";
export * from "./random.ts";
export { isRepeatable } from "./repeatable-call.ts";
export * from "./times.ts";
export { isRefusedStream, isTransportFailure } from "./transport-failure.ts";
