export * from "./holder-session.ts";
export * from "./open.ts";
export {
  type CallClaims,
  type CallerSession,
  requestSession,
  type SessionRequest,
  type SessionRequestParams,
} from "./request.ts";
export * from "./sessions.ts";
export type { SessionTerms } from "./terms.ts";
