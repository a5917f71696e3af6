import type { JsonObject } from "@bufbuild/protobuf";
import { ErrorReason, type FieldViolation, reasonName, Status, statusOf } from "@depute/core";
import { requestStatusOf } from "@depute/service";
import { refusalIn } from "../../edge/fault.ts";
import type { WireError } from "../../edge/route.ts";

/** The codes that `error.code` of a receipt allows. (Agenta execution_receipt.schema.json) */
type Code =
  | "invalid_request"
  | "offer_not_found"
  | "offer_version_mismatch"
  | "buyer_not_allowed"
  | "budget_exceeded"
  | "deadline_exceeded"
  | "capacity_unavailable"
  | "upstream_dependency_failed"
  | "verification_failed"
  | "internal_error";

/** The HTTP status, the protocol's code and the failure mode of a refusal. */
interface ErrorRow {
  readonly http: number;
  readonly code: Code;
  /** The name of the failure mode in the protocol's manifest; absent if the manifest names none. */
  readonly mode?: string;
}

const SCHEMA = "schema_validation_failure";

/** The HTTP status and the protocol's code for a reason that is not in OWN, by the reason's gRPC status. */
const BY_STATUS: Readonly<Record<keyof typeof Status, ErrorRow>> = {
  UNSPECIFIED: { http: 500, code: "internal_error" },
  INVALID_ARGUMENT: { http: 400, code: "invalid_request", mode: SCHEMA },
  DEADLINE_EXCEEDED: { http: 504, code: "deadline_exceeded", mode: "deadline_exceeded" },
  NOT_FOUND: { http: 404, code: "invalid_request" },
  ALREADY_EXISTS: { http: 409, code: "invalid_request" },
  PERMISSION_DENIED: { http: 403, code: "buyer_not_allowed" },
  RESOURCE_EXHAUSTED: { http: 429, code: "capacity_unavailable", mode: "capacity_unavailable" },
  FAILED_PRECONDITION: { http: 409, code: "invalid_request" },
  ABORTED: { http: 409, code: "invalid_request" },
  OUT_OF_RANGE: { http: 400, code: "invalid_request" },
  UNIMPLEMENTED: { http: 501, code: "invalid_request" },
  INTERNAL: { http: 500, code: "internal_error" },
  UNAVAILABLE: { http: 503, code: "upstream_dependency_failed", mode: "upstream_dependency_failed" },
  UNAUTHENTICATED: { http: 401, code: "buyer_not_allowed" },
};

/** The exceptions from BY_STATUS: reasons that need a different code or HTTP status. */
const OWN: Partial<Record<ErrorReason, ErrorRow>> = {
  [ErrorReason.OFFER_NOT_FOUND]: { http: 404, code: "offer_not_found" },
  [ErrorReason.OFFER_VERSION_EXISTS]: {
    http: 409,
    code: "offer_version_mismatch",
    mode: "offer_version_mismatch",
  },
  [ErrorReason.CONFLICT_OF_INTEREST]: { http: 403, code: "verification_failed" },
  [ErrorReason.EVIDENCE_INSUFFICIENT]: {
    http: 409,
    code: "verification_failed",
    mode: "required_evidence_missing",
  },
  [ErrorReason.DIGEST_MISMATCH]: { http: 400, code: "verification_failed", mode: "digest_mismatch" },
  [ErrorReason.SHUTTING_DOWN]: { http: 503, code: "capacity_unavailable", mode: "capacity_unavailable" },
};

const byStatus = new Map<number, ErrorRow>(
  Object.entries(Status).map(([name, number]) => [number, BY_STATUS[name as keyof typeof Status]]),
);

/** An error as an HTTP answer. The member `error` of the body has the same members as `error` in a receipt. */
export interface AgentaError extends WireError {
  readonly body: { readonly error: JsonObject };
}

/** Converts a thrown value to the Agenta wire's error. */
export function toAgentaError(thrown: unknown, requestId: string): AgentaError {
  const refusal = refusalIn(thrown);
  const { reason, message, metadata, violations } = refusal;
  const row = OWN[reason] ?? byStatus.get(statusOf(reason)) ?? BY_STATUS.INTERNAL;
  const isTooLong = reason === ErrorReason.LIMIT_EXCEEDED && TOO_LONG.test(metadata.limit ?? "");
  const { code, mode, http: plain } = isTooLong ? TOO_LARGE : row;
  const http = requestStatusOf(refusal) ?? plain;
  if (reason === ErrorReason.INTERNAL) {
    const details = { reason: "INTERNAL", request_id: requestId };
    return answer(500, code, "an internal error of the platform", false, details);
  }
  const faults = violations.map(({ field, description }) => ({
    path: pointerOf(field),
    message: description,
  }));
  const status = statusOf(reason);
  const isRetryable =
    http === 408 || http === 503 || http === 504 || (status === Status.RESOURCE_EXHAUSTED && !isTooLong);
  return answer(http, code, message, isRetryable, {
    ...(mode !== undefined && { failure_mode: modeOf(mode, violations) }),
    reason: reasonName(reason),
    ...(faults[0] !== undefined && { path: faults[0].path, faults }),
    ...(Object.keys(metadata).length > 0 && { metadata }),
  });
}

/** Matches the names of limits on a document's size or depth. Limits on a number or a rate do not match. */
const TOO_LONG = /(^|[._])(bytes|depth)$/;
const TOO_LARGE: ErrorRow = { http: 413, code: "invalid_request", mode: SCHEMA };

function answer(
  status: number,
  code: Code,
  message: string,
  retryable: boolean,
  details: JsonObject,
): AgentaError {
  const error = { code, message: message.slice(0, 2000).toWellFormed(), retryable, details };
  return { status, body: { error } };
}

/**
 * Returns the failure mode of a refusal. Missing evidence, and evidence with a wrong digest, have the same reason. Only
 * the text of the violations distinguishes them.
 */
function modeOf(mode: string, violations: readonly FieldViolation[]): string {
  if (mode !== "required_evidence_missing") return mode;
  return violations.some(({ description }) => description.includes("digest")) ? "digest_mismatch" : mode;
}

/** Converts the field in a service's error to a JSON pointer into the request's document. */
function pointerOf(field: string): string {
  if (field === "" || field.startsWith("/")) return field;
  const inside = field.replace(/^(?:request|offer|result)(?=[.[]|$)/, "");
  const path = inside.replace(/\[(\d+)\]/g, "/$1").replaceAll(".", "/");
  return path === "" || path.startsWith("/") ? path : `/${path}`;
}
