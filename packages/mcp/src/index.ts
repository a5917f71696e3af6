export * from "./authoriser.ts";
export type { CallDecision, DecisionReport } from "./call-decision.ts";
export type { CallNotices } from "./call-notices.ts";
export { currentRequest, inRequest, type RequestOrigin } from "./current-request.ts";
export { argumentsDigest, definitionDigest } from "./digest.ts";
export { type DownstreamOptions, downstream, downstreamFactory, withPresentation } from "./downstream.ts";
export { type HeldKey, heldToken, holderKey, type KeySessions } from "./holder.ts";
export { HttpFace, type HttpFaceOptions } from "./http-face.ts";
export type { ObservedCall, ObservedOutcome, ObservedTaskRequest } from "./observed-call.ts";
export type { ElicitForTask, OwnTasks } from "./own-tasks.ts";
export { PlatformAuthoriser, type PlatformAuthoriserOptions } from "./platform-authoriser.ts";
export { once, type Presentation } from "./presentation.ts";
export { provingTransport } from "./proving-transport.ts";
export { McpProxy } from "./proxy.ts";
export type { ProxyOptions } from "./proxy-options.ts";
export type { ProxyRequest } from "./proxy-request.ts";
export { type DraftedTool, draftMap } from "./rules/draft-map.ts";
export { encodedHeader, headersFor, type ParamHeader, paramHeadersOf } from "./rules/param-headers.ts";
export {
  ConfigError,
  type ProxyConfig,
  readConfig,
  type UpstreamAddress,
  type UpstreamConfig,
} from "./rules/read-config.ts";
export { DENIED, Refusal } from "./rules/refusal.ts";
export { MEMBER } from "./rules/strip.ts";
export { type McpTask, type ToolResult, toolResult } from "./rules/task-form.ts";
export type { CallRule, ToolMap } from "./rules/tool-map.ts";
export { type PlatformSchemaCheckOptions, platformSchemaCheck, type SchemaCheck } from "./schema-check.ts";
export { type StdioFace, type StdioFaceOptions, stdioFace } from "./serve-stdio.ts";
export type { ServerState } from "./server-state.ts";
export { SHIPPED_MAPS } from "./shipped-maps.ts";
export type { ListName } from "./subscription.ts";
export type { Seal } from "./task-handles.ts";
export type { FollowedTasks } from "./task-streams.ts";
export { type ToolServer, toolServer } from "./tool-server.ts";
export type {
  OwnPrompt,
  OwnResource,
  OwnResources,
  OwnTool,
  ToolServerOptions,
} from "./tool-server-options.ts";
export type { Elicited } from "./tool-sessions.ts";
export { Upstream } from "./upstream.ts";
export { UpstreamError } from "./upstream-fault.ts";
export type { Ask, UpstreamOptions } from "./upstream-options.ts";
