import { create, type DescMessage, type MessageInitShape } from "@bufbuild/protobuf";
import { anyPack } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError } from "@connectrpc/connect";
import {
  BadRequestSchema,
  ErrorInfoSchema,
  RetryInfoSchema,
} from "@depute/contracts/google/rpc/error_details_pb";
import { type Status, StatusSchema } from "@depute/contracts/google/rpc/status_pb";
import {
  DeputeError,
  ERROR_DOMAIN,
  ErrorReason,
  type FieldViolation,
  reasonName,
  reasonNamed,
  statusOf,
} from "@depute/core";
import { CHALLENGE } from "./challenge.ts";
import { type FittedError, fitError } from "./fit-error.ts";
import type { ErrorNote, NotedError } from "./service-manners.ts";

/**
 * Converts a refusal to a Connect error, short enough for every client to read. The error has the reason's
 * status, google.rpc.ErrorInfo and, for faulty fields, google.rpc.BadRequest. A refusal that states when to call again
 * has google.rpc.RetryInfo.
 */
export function toWire(error: DeputeError, info?: NotedError["info"]): ConnectError {
  const code = statusOf(error.reason) as number as Code;
  const fitted = fitError(error);
  // Connect sends UNAUTHENTICATED as HTTP status 401, whose response must name the ways to authenticate.
  const headers = code === Code.Unauthenticated ? CHALLENGE : retryHeader(error);
  return new ConnectError(
    fitted.message,
    code,
    headers,
    detailsOf(error.reason, fitted, info) as never,
    error,
  );
}

/**
 * Converts a refusal to a google.rpc.Status inside a response, with the same content as toWire. Batch methods
 * need this form, because each item may be refused separately.
 */
export function toStatus(error: DeputeError): Status {
  const { reason } = error;
  const fitted = fitError(error);
  const details = detailsOf(reason, fitted).map(({ desc, value }) => anyPack(desc, create(desc, value)));
  return create(StatusSchema, { code: statusOf(reason), message: fitted.message, details });
}

function detailsOf(
  reason: ErrorReason,
  { metadata, violations }: FittedError,
  first?: NotedError["info"],
): Detail[] {
  const ownInfo = { reason: reasonName(reason), domain: ERROR_DOMAIN };
  const infos: Detail[] = (first === undefined ? [ownInfo] : [first, ownInfo]).map((names) => ({
    desc: ErrorInfoSchema,
    value: { ...names, metadata },
  }));
  const delayMs = retryAfterMs(metadata);
  if (delayMs !== undefined) {
    const retryDelay = { seconds: BigInt(Math.floor(delayMs / 1000)), nanos: (delayMs % 1000) * 1_000_000 };
    infos.push({ desc: RetryInfoSchema, value: { retryDelay } });
  }
  if (violations.length === 0) return infos;
  const fieldViolations = violations.map(({ field, description, reason: rule = "" }) => ({
    field,
    description,
    reason: rule,
  }));
  return [...infos, { desc: BadRequestSchema, value: { fieldViolations } }];
}

/** Returns the milliseconds after which a caller may repeat a refused call; undefined if the refusal states none. */
function retryAfterMs({ retry_after_ms: text = "" }: Readonly<Record<string, string>>): number | undefined {
  return /^\d{1,9}$/.test(text) ? Number(text) : undefined;
}

/**
 * Returns the header `retry-after` for a refusal that states when to call again (RFC 9110 10.2.3); undefined for any
 * other refusal.
 */
export function retryHeader({ metadata }: DeputeError): { "retry-after": string } | undefined {
  const delayMs = retryAfterMs(metadata);
  return delayMs === undefined ? undefined : { "retry-after": String(Math.ceil(delayMs / 1000)) };
}

interface Detail {
  readonly desc: DescMessage;
  readonly value: MessageInitShape<DescMessage>;
}

/**
 * Converts any exception to a Connect error. A refusal of this service or of another service keeps its reason. An error
 * that Connect itself raised gets the reason that means the same as its code. A cancel becomes CANCELED, without a
 * reason. Every other exception becomes INTERNAL with a fixed message; its metadata has only the call's id, as
 * `request_id`.
 */
export function toConnectError(thrown: unknown, requestId = ""): ConnectError {
  if (thrown instanceof DeputeError) {
    return thrown.reason === ErrorReason.INTERNAL ? internal(thrown, requestId) : toWire(thrown);
  }
  if (!(thrown instanceof ConnectError)) {
    return isAbort(thrown) ? new ConnectError("canceled", Code.Canceled) : internal(thrown, requestId);
  }
  if (thrown.code === Code.Canceled) return thrown;
  const known = fromErrorInfo(thrown);
  if (known !== undefined) return toWire(known);
  const reason = isUnreadable(thrown) ? ErrorReason.INVALID_REQUEST : REASON_OF_CODE.get(thrown.code);
  if (reason === undefined) return internal(thrown, requestId);
  return toWire(withoutReason(reason, thrown));
}

/**
 * Adds the data of a service's {@link ErrorNote} to an error. An error without a reason of `ErrorReason` stays
 * unchanged.
 */
export function withNote(error: ConnectError, note: ErrorNote | undefined): ConnectError {
  const known = note === undefined ? undefined : fromErrorInfo(error);
  if (note === undefined || known === undefined) return error;
  const { metadata: more, info } = note(known.reason);
  const metadata = { ...more, ...known.metadata };
  return toWire(known.with({ metadata, cause: error.cause }), info);
}

/**
 * Converts an error that a client caught to a refusal. The refusal keeps the error's reason, so a reason passes
 * unchanged through any number of processes. An error without a reason of `ErrorReason` gets the reason that means the
 * same as its code, or INTERNAL.
 */
export function fromConnectError(caught: unknown): DeputeError {
  if (caught instanceof DeputeError) return caught;
  if (!(caught instanceof ConnectError)) {
    return new DeputeError(ErrorReason.INTERNAL, "internal error", { cause: caught });
  }
  const known = fromErrorInfo(caught);
  if (known !== undefined) return known;
  const reason = REASON_OF_CODE.get(caught.code) ?? ErrorReason.INTERNAL;
  return withoutReason(reason, caught);
}

/** Returns the reason of an error; undefined if the error has no reason of `ErrorReason`. */
export function reasonOf(caught: unknown): ErrorReason | undefined {
  if (caught instanceof DeputeError) return caught.reason;
  return caught instanceof ConnectError ? fromErrorInfo(caught)?.reason : undefined;
}

const REASON_OF_CODE = new Map<Code, ErrorReason>([
  [Code.InvalidArgument, ErrorReason.INVALID_REQUEST],
  [Code.DeadlineExceeded, ErrorReason.DEADLINE_EXCEEDED],
  [Code.PermissionDenied, ErrorReason.CALLER_NOT_ALLOWED],
  [Code.ResourceExhausted, ErrorReason.LIMIT_EXCEEDED],
  [Code.Unimplemented, ErrorReason.UNKNOWN_METHOD],
  [Code.Unavailable, ErrorReason.DEPENDENCY_UNAVAILABLE],
  [Code.Unauthenticated, ErrorReason.UNAUTHENTICATED],
]);

function internal(cause: unknown, requestId: string): ConnectError {
  const metadata: Record<string, string> = requestId === "" ? {} : { request_id: requestId };
  return toWire(new DeputeError(ErrorReason.INTERNAL, "internal error", { metadata, cause }));
}

function fromErrorInfo(error: ConnectError): DeputeError | undefined {
  const info = error.findDetails(ErrorInfoSchema).find((detail) => detail.domain === ERROR_DOMAIN);
  const reason = info === undefined ? undefined : reasonNamed(info.reason);
  if (info === undefined || reason === undefined) return undefined;
  const violations = error
    .findDetails(BadRequestSchema)
    .flatMap((detail) => detail.fieldViolations)
    .map(
      ({ field, description, reason: rule }): FieldViolation =>
        rule === "" ? { field, description } : { field, description, reason: rule },
    );
  return DeputeError.received(reason, error.rawMessage, {
    metadata: { ...info.metadata },
    violations,
    cause: error,
  });
}

/** Converts a Connect error without a reason to a DeputeError with the given reason. */
function withoutReason(reason: ErrorReason, error: ConnectError): DeputeError {
  const { rawMessage } = error;
  const max = reason === ErrorReason.LIMIT_EXCEEDED ? TOO_LONG.exec(rawMessage)?.[1] : undefined;
  if (max === undefined) return DeputeError.received(reason, rawMessage, { cause: error });
  const message = `the message is longer than ${max} bytes; split it, or store its content and send a reference`;
  return DeputeError.received(reason, message, { metadata: { limit: "message_bytes", max }, cause: error });
}

/** Matches the message of Connect's error for a message that is too long. */
const TOO_LONG = /^message (?:size )?.*is larger than configured readMaxBytes (\d+)/;

/**
 * Whether the error is about the invalid bytes of a message. Such bytes are the caller's fault, although Connect raises
 * INTERNAL for them.
 */
function isUnreadable(error: ConnectError): boolean {
  return error.code === Code.Internal && !error.isWireError && error.rawMessage.startsWith("parse binary: ");
}

function isAbort(thrown: unknown): boolean {
  return thrown instanceof Error && thrown.name === "AbortError";
}
