import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import { type DeputeError, ERROR_DOMAIN, ErrorReason, reasonName } from "@depute/core";
import type { NotedError } from "@depute/service";
import { errorTable } from "../../edge/error-table.ts";
import { JSON_RPC } from "../../edge/own-codes.ts";

/** The `domain` of A2A's errors in google.rpc.ErrorInfo. (A2A 5.4) */
export const A2A_DOMAIN = "a2a-protocol.org";

interface A2aError {
  /** The JSON-RPC code. */
  readonly code: number;
  readonly message: string;
  /** The reason in google.rpc.ErrorInfo. */
  readonly reason: string;
}

/** The nine errors of A2A. (A2A 5.4) */
export const A2A = {
  TASK_NOT_FOUND: { code: -32001, message: "Task not found", reason: "TASK_NOT_FOUND" },
  TASK_NOT_CANCELABLE: { code: -32002, message: "Task cannot be canceled", reason: "TASK_NOT_CANCELABLE" },
  PUSH_NOTIFICATION_NOT_SUPPORTED: {
    code: -32003,
    message: "Push Notification is not supported",
    reason: "PUSH_NOTIFICATION_NOT_SUPPORTED",
  },
  UNSUPPORTED_OPERATION: {
    code: -32004,
    message: "This operation is not supported",
    reason: "UNSUPPORTED_OPERATION",
  },
  CONTENT_TYPE_NOT_SUPPORTED: {
    code: -32005,
    message: "Incompatible content types",
    reason: "CONTENT_TYPE_NOT_SUPPORTED",
  },
  INVALID_AGENT_RESPONSE: {
    code: -32006,
    message: "Invalid agent response",
    reason: "INVALID_AGENT_RESPONSE",
  },
  EXTENDED_AGENT_CARD_NOT_CONFIGURED: {
    code: -32007,
    message: "Extended agent card is not configured",
    reason: "EXTENDED_AGENT_CARD_NOT_CONFIGURED",
  },
  EXTENSION_SUPPORT_REQUIRED: {
    code: -32008,
    message: "Extension support required",
    reason: "EXTENSION_SUPPORT_REQUIRED",
  },
  VERSION_NOT_SUPPORTED: {
    code: -32009,
    message: "Protocol version not supported",
    reason: "VERSION_NOT_SUPPORTED",
  },
} as const satisfies Record<string, A2aError>;

/** The A2A error for each reason of Depute. Contains only reasons for which A2A defines an error. */
const OWN = {
  TASK_NOT_FOUND: A2A.TASK_NOT_FOUND,
  TASK_NOT_CANCELLABLE: A2A.TASK_NOT_CANCELABLE,
  TASK_STATE_CONFLICT: A2A.UNSUPPORTED_OPERATION,
  TASK_NOT_RESUMABLE: A2A.UNSUPPORTED_OPERATION,
  OPERATION_UNSUPPORTED: A2A.UNSUPPORTED_OPERATION,
  PUSH_NOTIFICATIONS_UNSUPPORTED: A2A.PUSH_NOTIFICATION_NOT_SUPPORTED,
  CONTENT_TYPE_UNSUPPORTED: A2A.CONTENT_TYPE_NOT_SUPPORTED,
  AGENT_RESPONSE_INVALID: A2A.INVALID_AGENT_RESPONSE,
  EXTENDED_CARD_NOT_FOUND: A2A.EXTENDED_AGENT_CARD_NOT_CONFIGURED,
  EXTENSION_REQUIRED: A2A.EXTENSION_SUPPORT_REQUIRED,
  PROTOCOL_VERSION_UNSUPPORTED: A2A.VERSION_NOT_SUPPORTED,
} as const satisfies Partial<Record<keyof typeof ErrorReason, A2aError>>;

/**
 * The JSON-RPC code for each reason: the code of the A2A error if A2A defines one, otherwise JSON-RPC's or Depute's
 * code.
 */
export const A2A_ERRORS = errorTable({
  ...OWN,
  MALFORMED_JSON: JSON_RPC.PARSE_ERROR,
  PAGE_TOKEN_INVALID: JSON_RPC.INVALID_PARAMS,
});

const BY_REASON = new Map<ErrorReason, A2aError>(
  Object.entries(OWN).map(([name, error]) => [ErrorReason[name as keyof typeof OWN], error]),
);

/**
 * Returns the reason and the domain of google.rpc.ErrorInfo. They are A2A's if A2A defines an error for the reason,
 * otherwise Depute's.
 */
export function infoOf({ reason, metadata }: DeputeError): {
  reason: string;
  domain: string;
  metadata: Record<string, string>;
} {
  const ownRow = BY_REASON.get(reason);
  return ownRow === undefined
    ? { reason: reasonName(reason), domain: ERROR_DOMAIN, metadata: { ...metadata } }
    : { reason: ownRow.reason, domain: A2A_DOMAIN, metadata: { ...metadata } };
}

/**
 * Returns the ErrorInfo of a refusal on gRPC, with A2A's reason and domain. The result is empty if A2A defines no error
 * for the reason. (A2A 10.6)
 */
export function errorNote(reason: ErrorReason): NotedError {
  const ownRow = BY_REASON.get(reason);
  return ownRow === undefined ? {} : { info: { reason: ownRow.reason, domain: A2A_DOMAIN } };
}

/**
 * Returns the details of an error in JSON: google.rpc.ErrorInfo, and google.rpc.BadRequest for faulty fields. (A2A 9.5)
 */
export function detailsOf(refusal: DeputeError, requestId: string): JsonValue[] {
  // For an internal fault the client gets only the request id. The log contains the cause under this id.
  if (refusal.reason === ErrorReason.INTERNAL) {
    return [{ "@type": INFO, reason: "INTERNAL", domain: ERROR_DOMAIN, metadata: { request_id: requestId } }];
  }
  const info: JsonObject = { "@type": INFO, ...infoOf(refusal) };
  if (refusal.violations.length === 0) return [info];
  const fieldViolations = refusal.violations.map(({ field, description }) => ({ field, description }));
  return [info, { "@type": BAD_REQUEST, fieldViolations }];
}

const INFO = "type.googleapis.com/google.rpc.ErrorInfo";
const BAD_REQUEST = "type.googleapis.com/google.rpc.BadRequest";
