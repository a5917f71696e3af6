import type { JsonValue } from "@bufbuild/protobuf";
import { DeputeError, ErrorReason, reasonName } from "@depute/core";
import { requestStatusOf } from "@depute/service";
import { refusalIn } from "../../edge/fault.ts";
import type { WireError } from "../../edge/route.ts";

/** The error codes of the token endpoint. (RFC 6749 section 5.2, RFC 8693 section 2.2.2, RFC 9449 section 5) */
export type OAuthCode =
  | "invalid_request"
  | "invalid_client"
  | "invalid_grant"
  | "invalid_scope"
  | "invalid_target"
  | "invalid_dpop_proof"
  | "unauthorized_client"
  | "unsupported_grant_type"
  | "temporarily_unavailable"
  | "server_error";

/** A refusal by the token endpoint itself, not by a service that the endpoint calls. The request is at fault. */
export class OAuthFault extends DeputeError<typeof ErrorReason.INVALID_REQUEST> {
  readonly code: OAuthCode;

  constructor(code: OAuthCode, description: string) {
    super(ErrorReason.INVALID_REQUEST, description);
    this.name = "OAuthFault";
    this.code = code;
  }
}

/** Matches the characters that an error description must not contain. (RFC 6749 appendix A.8) */
const NOT_DESCRIPTION = /[^\x20\x21\x23-\x5b\x5d-\x7e]/g;

/** Converts an error to an error answer of the token endpoint. */
export function toOAuthError(thrown: unknown): WireError {
  if (thrown instanceof OAuthFault) {
    return answer(400, thrown.code, thrown.message, thrown.reason);
  }
  const refusal = refusalIn(thrown);
  const status = requestStatusOf(refusal);
  if (status !== undefined) return answer(status, "invalid_request", refusal.message, refusal.reason);
  const code = codeOf(refusal);
  const text =
    code === "server_error" ? "an internal error; the platform's log contains the cause" : refusal.message;
  return answer(STATUS[code] ?? 400, code, text, refusal.reason);
}

const STATUS: Partial<Record<OAuthCode, number>> = { temporarily_unavailable: 503, server_error: 500 };

function codeOf({ reason, metadata }: DeputeError): OAuthCode {
  switch (reason) {
    case ErrorReason.UNAUTHENTICATED:
      if (metadata.denial !== undefined) return "invalid_dpop_proof";
      return metadata.fault === "issuer_unavailable" ? "temporarily_unavailable" : "invalid_request";
    case ErrorReason.TOKEN_DENIED:
    case ErrorReason.TOKEN_MALFORMED:
    case ErrorReason.INVALID_REQUEST:
      return "invalid_request";
    case ErrorReason.ATTENUATION_VIOLATION:
      return "invalid_scope";
    case ErrorReason.CALLER_NOT_ALLOWED:
      return "unauthorized_client";
    case ErrorReason.LIMIT_EXCEEDED:
    case ErrorReason.DEPENDENCY_UNAVAILABLE:
    case ErrorReason.DEADLINE_EXCEEDED:
      return "temporarily_unavailable";
    default:
      return "server_error";
  }
}

/**
 * Creates an error answer. Besides the members of RFC 6749, the answer contains `reason`: Depute's error reason, which
 * is the same on every wire.
 */
function answer(status: number, error: string, description: string, reason: ErrorReason): WireError {
  const text = description.replace(NOT_DESCRIPTION, "'");
  const body: JsonValue = { error, error_description: text, reason: reasonName(reason) };
  return { status, body };
}
