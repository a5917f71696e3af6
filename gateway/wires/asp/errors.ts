import type { JsonObject } from "@bufbuild/protobuf";
import { isRetryable, REFUSALS, type RefusalCode } from "@depute/asp";
import { RejectionCode } from "@depute/contracts/asp/v0/asp_common_pb";
import { type DeputeError, ErrorReason, reasonName, Status, statusOf } from "@depute/core";
import { requestStatusOf } from "@depute/service";
import { refusalIn, violationsOf } from "../../edge/fault.ts";

/** The names of ASP's error codes. (ASP specification "Error codes") */
const WORDS: ReadonlyMap<RejectionCode, string> = new Map([
  ...Object.entries(RejectionCode).map(([name, code]) => [code, name.toLowerCase()] as const),
  [RejectionCode.OTHER, "unspecified"],
]);

interface ErrorRow {
  readonly http: number;
  readonly code: RejectionCode;
}

/** The ASP code and the HTTP status for each gRPC status. */
const BY_STATUS: Readonly<Record<keyof typeof Status, ErrorRow>> = {
  UNSPECIFIED: { http: 500, code: RejectionCode.OTHER },
  INVALID_ARGUMENT: { http: 400, code: RejectionCode.SCHEMA_UNSUPPORTED },
  DEADLINE_EXCEEDED: { http: 504, code: RejectionCode.TIMEOUT },
  NOT_FOUND: { http: 404, code: RejectionCode.OTHER },
  ALREADY_EXISTS: { http: 409, code: RejectionCode.DUPLICATE },
  PERMISSION_DENIED: { http: 403, code: RejectionCode.UNAUTHORIZED },
  RESOURCE_EXHAUSTED: { http: 429, code: RejectionCode.CAPACITY_UNAVAILABLE },
  FAILED_PRECONDITION: { http: 409, code: RejectionCode.OTHER },
  ABORTED: { http: 409, code: RejectionCode.DUPLICATE },
  OUT_OF_RANGE: { http: 400, code: RejectionCode.OTHER },
  UNIMPLEMENTED: { http: 501, code: RejectionCode.OTHER },
  INTERNAL: { http: 500, code: RejectionCode.OTHER },
  UNAVAILABLE: { http: 503, code: RejectionCode.CAPACITY_UNAVAILABLE },
  UNAUTHENTICATED: { http: 401, code: RejectionCode.UNAUTHORIZED },
};

const byStatus = new Map<number, ErrorRow>(
  Object.entries(Status).map(([name, number]) => [number, BY_STATUS[name as keyof typeof Status]]),
);

/** An error as an HTTP answer. */
export interface AspError {
  readonly status: number;
  readonly body: { readonly error: JsonObject };
}

/** Converts a thrown value to the ASP wire's error: the protocol's code, and the platform's reason. */
export function toAspError(thrown: unknown, requestId: string): AspError {
  const refusal = refusalIn(thrown);
  const row = byStatus.get(statusOf(refusal.reason)) ?? BY_STATUS.INTERNAL;
  const oversize = oversizeStatusOf(refusal);
  // An oversized message gets the code `malformed`, so that the client does not send it again.
  if (oversize !== undefined) refusal.metadata.code = "malformed";
  const known = knownRefusal(refusal);
  const code = known?.rejection ?? row.code;
  if (refusal.reason === ErrorReason.INTERNAL) {
    const metadata = { request_id: requestId };
    return {
      status: 500,
      body: { error: { code: "unspecified", retryable: false, reason: "INTERNAL", metadata } },
    };
  }
  return {
    status: oversize ?? requestStatusOf(refusal) ?? row.http,
    body: {
      error: {
        code: WORDS.get(code) ?? "unspecified",
        retryable: known?.retryable ?? isRetryable(code),
        reason: reasonName(refusal.reason),
        detail: refusal.message,
        metadata: refusal.metadata,
        ...violationsOf(refusal),
      },
    },
  };
}

/** Returns the HTTP status for a document that exceeds a limit of size or depth; undefined for any other refusal. */
function oversizeStatusOf(refusal: DeputeError): number | undefined {
  if (refusal.reason !== ErrorReason.LIMIT_EXCEEDED) return undefined;
  return refusal.metadata.limit === "json_depth" ? 400 : requestStatusOf(refusal);
}

function knownRefusal({ metadata: { code = "" } }: DeputeError) {
  return Object.hasOwn(REFUSALS, code) ? REFUSALS[code as RefusalCode] : undefined;
}
