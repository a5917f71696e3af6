import { create, type DescMessage, type MessageInitShape } from "@bufbuild/protobuf";
import { anyPack } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError } from "@connectrpc/connect";
import { BadRequestSchema, ErrorInfoSchema } from "@depute/contracts/google/rpc/error_details_pb";
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
import type { ErrorNote } from "./service-manners.ts";

/** A refusal as it travels, cut so that every client can read it: the reason's status, google.rpc.ErrorInfo and, for faulty fields, google.rpc.BadRequest. */
export function toWire(error: DeputeError): ConnectError {
  const code = statusOf(error.reason) as number as Code;
  const fitted = fitError(error);
  // Connect answers UNAUTHENTICATED with HTTP's 401, which names the ways to authenticate.
  const headers = code === Code.Unauthenticated ? CHALLENGE : undefined;
  return new ConnectError(fitted.message, code, headers, detailsOf(error.reason, fitted) as never, error);
}

/** The same within a message: for calls that do several things, of which some may be refused. */
export function toStatus(error: DeputeError): Status {
  const { reason } = error;
  const fitted = fitError(error);
  const details = detailsOf(reason, fitted).map(({ desc, value }) => anyPack(desc, create(desc, value)));
  return create(StatusSchema, { code: statusOf(reason), message: fitted.message, details });
}

function detailsOf(reason: ErrorReason, { metadata, violations }: FittedError): Detail[] {
  const info = { reason: reasonName(reason), domain: ERROR_DOMAIN, metadata };
  if (violations.length === 0) return [{ desc: ErrorInfoSchema, value: info }];
  const fieldViolations = violations.map(({ field, description, reason: rule = "" }) => ({
    field,
    description,
    reason: rule,
  }));
  return [
    { desc: ErrorInfoSchema, value: info },
    { desc: BadRequestSchema, value: { fieldViolations } },
  ];
}

interface Detail {
  readonly desc: DescMessage;
  readonly value: MessageInitShape<DescMessage>;
}

/**
 * What a server answers for whatever was thrown.
 *
 * A refusal keeps its reason, also one that another service sent. Codes that Connect itself raises get the reason that
 * means the same. Everything else is INTERNAL, and says nothing but the request id.
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

/** The same error with a note of its service; one without a reason of the vocabulary is left as it is. */
export function withNote(error: ConnectError, note: ErrorNote | undefined): ConnectError {
  const known = note === undefined ? undefined : fromErrorInfo(error);
  if (note === undefined || known === undefined) return error;
  const metadata = { ...note(known.reason), ...known.metadata };
  return toWire(known.with({ metadata, cause: error.cause }));
}

/**
 * The refusal in an error that a client caught; a reason is kept through any number of hops.
 *
 * An error without a reason of the vocabulary gets the one that its code means; INTERNAL where none does.
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

/** The reason of an error if it carries one of the vocabulary. */
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

/** The refusal of an error that came without a reason of the vocabulary. */
function withoutReason(reason: ErrorReason, error: ConnectError): DeputeError {
  const { rawMessage: message } = error;
  const max = reason === ErrorReason.LIMIT_EXCEEDED ? TOO_LONG.exec(message)?.[1] : undefined;
  const metadata = max === undefined ? {} : { limit: "message_bytes", max };
  return DeputeError.received(reason, message, { metadata, cause: error });
}

/** How Connect refuses a message that is too long. */
const TOO_LONG = /^message (?:size )?.*is larger than configured readMaxBytes (\d+)/;

/** Bytes that are not of the contract are the caller's fault; Connect raises INTERNAL for them. */
function isUnreadable(error: ConnectError): boolean {
  return error.code === Code.Internal && !error.isWireError && error.rawMessage.startsWith("parse binary: ");
}

function isAbort(thrown: unknown): boolean {
  return thrown instanceof Error && thrown.name === "AbortError";
}
