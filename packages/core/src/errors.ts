import { getOption } from "@bufbuild/protobuf";
import {
  ErrorReason,
  ErrorReasonSchema,
  Status,
  status as statusOption,
} from "@depute/contracts/depute/errors/v1/error_reason_pb";
import { type RequiredKey, requiredMetadata } from "./required-metadata.ts";

export { ErrorReason, Status };

/** The `domain` of every google.rpc.ErrorInfo that Depute sends. */
export const ERROR_DOMAIN = "depute.dev";

const PREFIX = "ERROR_REASON_";

/** One invalid field, in the form of google.rpc.BadRequest.FieldViolation. */
export interface FieldViolation {
  /** Path from the request message, e.g. `filter.page_size` or `steps[3].name`; empty for the message as a whole. */
  field: string;
  /** Describes the fault, for people. */
  description: string;
  /** The id of the broken rule, e.g. `string.max_len`, for a program. */
  reason?: string;
}

export interface DeputeErrorOptions {
  /** The metadata of the refusal. The comment of the reason in `ErrorReason` lists the keys. */
  metadata?: Record<string, string>;
  violations?: FieldViolation[];
  /** The cause of the refusal. The process logs it, and never sends it. */
  cause?: unknown;
}

/**
 * The last parameter of DeputeError's constructor. If a reason requires metadata, the parameter must contain this
 * metadata. For a reason that is known only at run time, the parameter must contain the keys of all possible
 * reasons.
 */
type OptionsFor<Reason extends ErrorReason> = [RequiredKey<Reason>] extends [never]
  ? [options?: DeputeErrorOptions]
  : [options: DeputeErrorOptions & { metadata: Record<RequiredKey<Reason>, string> }];

/** The changes that {@link DeputeError.with} makes. */
interface Changes extends DeputeErrorOptions {
  message?: string;
}

/** The value of a required metadata key if the process that refused the request did not send the key. */
export const UNKNOWN = "unknown";

/** Maximum number of violations in one refusal; the refusal's metadata `more_violations` counts the others. */
export const MAX_VIOLATIONS = 20;

/** Maximum length of a refusal's message, in characters. */
const MAX_MESSAGE_CHARS = 1000;

/**
 * A refusal of a request. No other error class refuses requests. The caller sees the message, so the message contains
 * no secret. The error contains the first violations, and counts the others.
 */
export class DeputeError<Reason extends ErrorReason = ErrorReason> extends Error {
  readonly reason: ErrorReason;
  readonly metadata: Record<string, string>;
  readonly violations: FieldViolation[];

  constructor(reason: Reason, message: string, ...rest: OptionsFor<Reason>) {
    const options: DeputeErrorOptions = rest[0] ?? {};
    const { metadata = {}, violations = [] } = options;
    const more = violations.length - MAX_VIOLATIONS;
    super(shortened(message, more), "cause" in options ? { cause: options.cause } : undefined);
    this.name = "DeputeError";
    this.reason = reason;
    this.metadata = more > 0 ? { ...metadata, more_violations: String(more) } : metadata;
    this.violations = more > 0 ? violations.slice(0, MAX_VIOLATIONS) : violations;
  }

  /**
   * Creates a refusal whose reason is known only at run time, because another process made it. Missing keys that the
   * reason requires become {@link UNKNOWN}.
   */
  static received(reason: ErrorReason, message: string, options: DeputeErrorOptions = {}): DeputeError {
    const unknown = Object.fromEntries(requiredMetadata(reason).map((key) => [key, UNKNOWN]));
    return DeputeError.#make(reason, message, { ...options, metadata: { ...unknown, ...options.metadata } });
  }

  /** Returns the same refusal with another message, more metadata, other violations or another cause. */
  with({ message = this.message, metadata, violations = this.violations, ...cause }: Changes): DeputeError {
    const all = { ...this.metadata, ...metadata };
    return DeputeError.#make(this.reason, message, { ...cause, metadata: all, violations });
  }

  static #make(reason: ErrorReason, message: string, options: DeputeErrorOptions): DeputeError {
    return new DeputeError(reason as typeof ErrorReason.INTERNAL, message, options);
  }
}

function shortened(message: string, moreViolations: number): string {
  const isShort = message.length <= MAX_MESSAGE_CHARS;
  const text = isShort ? message : `${message.slice(0, MAX_MESSAGE_CHARS).toWellFormed()}…`;
  return moreViolations > 0 ? `${text} (and ${moreViolations} more violations)` : text;
}

interface ReasonEntry {
  name: string;
  status: Status;
}

const byNumber = new Map<number, ReasonEntry>();
const byName = new Map<string, ErrorReason>();
for (const value of ErrorReasonSchema.values) {
  const name = value.name.slice(PREFIX.length);
  byNumber.set(value.number, { name, status: getOption(value, statusOption) });
  byName.set(name, value.number as ErrorReason);
}

/**
 * Returns the gRPC status of a reason, numbered as google.rpc.Code; INTERNAL for a reason that `ErrorReason`
 * does not have.
 */
export function statusOf(reason: ErrorReason): Status {
  return byNumber.get(reason)?.status ?? Status.INTERNAL;
}

/**
 * Returns the reason's name without its prefix, e.g. `TASK_NOT_FOUND`; `INTERNAL` for a reason that
 * `ErrorReason` does not have.
 */
export function reasonName(reason: ErrorReason): string {
  return byNumber.get(reason)?.name ?? "INTERNAL";
}

/**
 * Returns the reason with this name, which has no prefix, e.g. `TASK_NOT_FOUND`; undefined if `ErrorReason` has no such
 * reason.
 */
export function reasonNamed(name: string): ErrorReason | undefined {
  return byName.get(name);
}

/**
 * Returns the error for a request id, or another idempotency key, that was used before with different content.
 *
 * @param subject the content that differs, e.g. `draft`
 * @param field the field of the request that contains the key
 */
export function requestIdReused(requestId: string, subject = "body", field = "request_id"): DeputeError {
  const description = `was used with a different ${subject}; use a new one`;
  return new DeputeError(ErrorReason.REQUEST_ID_REUSED, `${field}: ${description}`, {
    metadata: { request_id: requestId },
    violations: [{ field, description }],
  });
}

/** Creates an INVALID_REQUEST for one invalid field. */
export function invalid(field: string, description: string): DeputeError {
  return new DeputeError(
    ErrorReason.INVALID_REQUEST,
    field === "" ? description : `${field}: ${description}`,
    {
      violations: [{ field, description }],
    },
  );
}
