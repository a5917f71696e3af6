import type { ExecutionRequest } from "@depute/contracts/agenta/delegation/v0/execution_request_pb";
import type { VerificationResult } from "@depute/contracts/agenta/delegation/v0/verification_result_pb";
import { DeputeError, ErrorReason, type FieldViolation, isDateTimeFormat, isUriFormat } from "@depute/core";

/** A string format that the protocol's JSON schema requires: an RFC 3339 time or a URI. */
type Form = "time" | "uri";

const FORMS: Readonly<Record<Form, { readonly holds: (text: string) => boolean; readonly fault: string }>> = {
  time: { holds: isDateTimeFormat, fault: "is not a calendar date" },
  uri: { holds: isUriFormat, fault: "is not a URI that the schema permits" },
};

/**
 * Requires the string formats of the protocol's JSON schema, which the protobuf contract does not check. The platform
 * later sends stored messages as JSON, which must fit that schema.
 *
 * @throws DeputeError INVALID_REQUEST with every fault
 */
export function checkForms(
  fields: readonly (readonly [field: string, form: Form, text: string | undefined])[],
): void {
  const violations: FieldViolation[] = [];
  for (const [field, form, text] of fields) {
    const { holds, fault } = FORMS[form];
    if (text !== undefined && !holds(text)) violations.push({ field, description: fault });
  }
  if (violations.length === 0) return;
  const summary = violations.map(({ field, description }) => `${field}: ${description}`).join("; ");
  throw new DeputeError(ErrorReason.INVALID_REQUEST, summary, { violations });
}

/**
 * Requires the string formats of a request, and metadata that JSON can represent.
 *
 * @throws DeputeError INVALID_REQUEST
 */
export function checkRequestForms({
  executionConstraints,
  requestedAt,
  callback,
  metadata,
}: ExecutionRequest): void {
  const limits = "request.execution_constraints";
  checkForms([
    ["request.requested_at", "time", requestedAt],
    [`${limits}.deadline_at`, "time", executionConstraints?.deadlineAt],
    [`${limits}.latest_start_at`, "time", executionConstraints?.latestStartAt],
    ["request.callback.url", "uri", callback?.url],
  ]);
  for (const [name, value] of Object.entries(metadata ?? {})) {
    const isNumber = typeof value === "number";
    if (
      !name.isWellFormed() ||
      (isNumber && !Number.isFinite(value)) ||
      (typeof value === "string" && !value.isWellFormed())
    ) {
      const violation = {
        field: "request.metadata",
        description: "contains a value that JSON cannot represent",
      };
      throw new DeputeError(
        ErrorReason.INVALID_REQUEST,
        "request.metadata contains a value that JSON cannot represent",
        {
          violations: [violation],
        },
      );
    }
  }
}

/**
 * Requires the string formats of a verification result.
 *
 * @throws DeputeError INVALID_REQUEST
 */
export function checkResultForms({ verifiedAt, evidence }: VerificationResult): void {
  checkForms([
    ["result.verified_at", "time", verifiedAt],
    ...(evidence?.values ?? []).map(({ uri }, at) => [`result.evidence[${at}].uri`, "uri", uri] as const),
  ]);
}
