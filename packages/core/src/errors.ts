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

/** One field at fault, as google.rpc.BadRequest.FieldViolation says it. */
export interface FieldViolation {
  /** Path from the request message, e.g. `filter.page_size` or `steps[3].name`; empty for the message as a whole. */
  field: string;
  /** What is wrong, for a person. */
  description: string;
  /** The id of the broken rule, e.g. `string.max_len`, for a program. */
  reason?: string;
}

export interface DeputeErrorOptions {
  /** The keys that the reason's comment in the vocabulary names. */
  metadata?: Record<string, string>;
  violations?: FieldViolation[];
  /** What led to this; it is logged and never sent. */
  cause?: unknown;
}

/** The last parameter of the constructor; a reason that is known only at run time demands the keys of all that it may be. */
type OptionsFor<Reason extends ErrorReason> = [RequiredKey<Reason>] extends [never]
  ? [options?: DeputeErrorOptions]
  : [options: DeputeErrorOptions & { metadata: Record<RequiredKey<Reason>, string> }];

/** What {@link DeputeError.with} changes. */
interface Changes extends DeputeErrorOptions {
  message?: string;
}

/** The value of a key that a reason requires and that the process that refused did not send. */
export const UNKNOWN = "unknown";

/** Violations that one refusal names; its metadata `more_violations` counts the others. */
export const MAX_VIOLATIONS = 20;

/** Characters of a refusal's message. */
const MAX_MESSAGE_CHARS = 1000;

/**
 * A refusal: the one way in which code says no. Its message is shown to the caller, so it holds no secret. Of many violations
 * it keeps the first ones, and says how many more there are.
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
   * A refusal whose reason is known only at run time, because another process made it. Keys that its reason requires and
   * that did not come are {@link UNKNOWN}.
   */
  static received(reason: ErrorReason, message: string, options: DeputeErrorOptions = {}): DeputeError {
    const unknown = Object.fromEntries(requiredMetadata(reason).map((key) => [key, UNKNOWN]));
    return DeputeError.#made(reason, message, { ...options, metadata: { ...unknown, ...options.metadata } });
  }

  /** The same refusal with other words, more metadata, other violations or another cause. */
  with({ message = this.message, metadata, violations = this.violations, ...cause }: Changes): DeputeError {
    const all = { ...this.metadata, ...metadata };
    return DeputeError.#made(this.reason, message, { ...cause, metadata: all, violations });
  }

  static #made(reason: ErrorReason, message: string, options: DeputeErrorOptions): DeputeError {
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

/** The gRPC status that a reason travels with, numbered as google.rpc.Code; INTERNAL for a reason not in the vocabulary. */
export function statusOf(reason: ErrorReason): Status {
  return byNumber.get(reason)?.status ?? Status.INTERNAL;
}

/** The reason's name without its prefix, e.g. `TASK_NOT_FOUND`; `INTERNAL` for a reason not in the vocabulary. */
export function reasonName(reason: ErrorReason): string {
  return byNumber.get(reason)?.name ?? "INTERNAL";
}

/** The reason of that name (without the prefix); undefined when the vocabulary has none. */
export function reasonNamed(name: string): ErrorReason | undefined {
  return byName.get(name);
}

/**
 * The refusal of a request id, or of another key that makes a call idempotent, that came with something else before.
 *
 * @param what what came with it, e.g. `draft`
 * @param field where the request has the key
 */
export function requestIdReused(requestId: string, what = "body", field = "request_id"): DeputeError {
  const description = `came with another ${what} before; use a new one`;
  return new DeputeError(ErrorReason.REQUEST_ID_REUSED, `${field}: ${description}`, {
    metadata: { request_id: requestId },
    violations: [{ field, description }],
  });
}

/** An INVALID_REQUEST whose fault is in one field. */
export function invalid(field: string, description: string): DeputeError {
  return new DeputeError(
    ErrorReason.INVALID_REQUEST,
    field === "" ? description : `${field}: ${description}`,
    {
      violations: [{ field, description }],
    },
  );
}
