/** The kinds of decisions. */
export const DECISION_KINDS = [
  "mint",
  "record",
  "attenuate",
  "inspect",
  "verify_token",
  "verify_proof",
  "open_session",
  "revoke",
  "reserve",
  "commit",
  "release",
  "finish",
  "create_key",
  "rotate_key",
  "rotate_root",
  "retire_root",
  "project",
  "call",
  "call_tool",
] as const;
export type DecisionKind = (typeof DECISION_KINDS)[number];

/** One decision on authority. A decision names blocks by id and contains no usable credential. */
export interface Decision {
  readonly kind: DecisionKind;
  /** The caller; empty for background work, and for a decision on the proof by which a caller identifies itself. */
  readonly caller: string;
  /** The principal whose authority was proven; empty if no authority was proven. */
  readonly principal: string;
  readonly decision: "allowed" | "denied";
  /**
   * The reason of a denial, such as `expired`. For an allowed decision: a detail of the change, such as `pending` or
   * the amount in microcents, or empty.
   */
  readonly reason: string;
  /** The revocation ids of the token's blocks, that of the authority block first. */
  readonly blocks: readonly string[];
  /**
   * The name of the record that the decision is about, such as `organizations/acme`. Absent if the call itself names
   * the record.
   */
  readonly resource?: string;
}

/** The call that caused a decision. An absent or empty member is unknown. */
export interface AuditedCall {
  readonly organization?: string;
  /** The kind of the caller's credentials; see `CredentialKind` of the service package. */
  readonly credential?: string;
  readonly address?: string;
  readonly onBehalfOf?: string;
  readonly rpc?: string;
  readonly wire?: string;
  readonly resource?: string;
  readonly requestId?: string;
  readonly traceId?: string;
}

/** A decision with its time, its call and its service. */
export interface AuditedDecision extends Omit<Decision, "resource"> {
  /** The time of the decision, in epoch milliseconds. */
  readonly time: number;
  readonly call: AuditedCall;
  /** The service that decided. */
  readonly source: string;
}

/** A decision with its position in the log. */
export interface AuditEntry extends AuditedDecision {
  /** The position in the log, starting at 1. */
  readonly id: number;
}

/** A filter of decisions. An absent member matches all decisions. Times are epoch milliseconds. */
export interface AuditFilter {
  readonly caller?: string;
  readonly principal?: string;
  readonly kind?: string;
  readonly decision?: Decision["decision"];
  readonly source?: string;
  readonly organization?: string;
  readonly resource?: string;
  readonly rpc?: string;
  readonly requestId?: string;
  /** The revocation id of one of the blocks on which the decision was made. */
  readonly block?: string;
  readonly from?: number;
  readonly before?: number;
}

/** The prefix of a tool call's resource, which has the form `mcp/SERVER/TOOL`. */
export const TOOL_CALLS = "mcp/";

/**
 * Returns the call's AuditRecord.request_id, under which the store indexes a decision on a tool call; undefined for
 * every other decision, or if the call has no such id.
 */
export function toolRequestOf({ call, kind }: Pick<AuditedDecision, "call" | "kind">): string | undefined {
  const { resource = "", requestId = "" } = call;
  const isOfCall = (kind === "verify_token" || kind === "call_tool") && resource.startsWith(TOOL_CALLS);
  return isOfCall && requestId !== "" ? requestId : undefined;
}

const OWN = ["caller", "principal", "kind", "decision", "source"] as const;
const OF_CALL = ["organization", "resource", "rpc", "requestId"] as const;

/** Returns whether a decision matches every member of the filter. */
export function matchesAudit(entry: AuditedDecision, filter: AuditFilter): boolean {
  const { block, from, before } = filter;
  if (from !== undefined && entry.time < from) return false;
  if (before !== undefined && entry.time >= before) return false;
  if (block !== undefined && !entry.blocks.includes(block)) return false;
  return (
    OWN.every((name) => filter[name] === undefined || filter[name] === entry[name]) &&
    OF_CALL.every((name) => filter[name] === undefined || filter[name] === entry.call[name])
  );
}
