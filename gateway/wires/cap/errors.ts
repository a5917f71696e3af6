import type { JsonObject } from "@bufbuild/protobuf";
import { CAP_CODES, capCodeOf, DeputeError, ErrorReason, reasonName } from "@depute/core";
import { requestStatusOf } from "@depute/service";
import type { WireError as JsonFault } from "@depute/wire";
import { refusalOf } from "@depute/wire";
import { refusalIn, violationsOf, WireFault } from "../../edge/fault.ts";
import type { WireError } from "../../edge/route.ts";

/** The sender id of the platform's own messages. No participant has this id. */
const PLATFORM = "depute";

/** The position at which a text stops being JSON. */
export interface TextPosition {
  /** Zero-based character offset from the beginning of the text. */
  readonly offset: number;
  /** The line, starting at 1. */
  readonly line: number;
  /** The column in characters, starting at 1. */
  readonly column: number;
}

/** The error for a text that is not JSON. It contains the position of the fault. */
export class BrokenJson extends DeputeError<typeof ErrorReason.MALFORMED_JSON> {
  readonly position: TextPosition;

  constructor(error: JsonFault, position: TextPosition) {
    const { offset, line, column } = position;
    super(ErrorReason.MALFORMED_JSON, `the text is not JSON at line ${line}, column ${column}`, {
      metadata: { path: "", offset: String(offset), line: String(line), column: String(column) },
      cause: refusalOf(error),
    });
    this.position = position;
  }
}

/** Returns the position of a character in a text. */
export function positionOf(text: string, offset: number): TextPosition {
  const before = text.slice(0, offset);
  const line = before.split("\n").length;
  return { offset, line, column: offset - before.lastIndexOf("\n") };
}

/** The task and the sender of a request. Each is absent if it could not be read from the request. */
export interface About {
  readonly taskId?: string;
  readonly senderId?: string;
}

/** A refusal together with the request's task and sender. */
class Concerning extends WireFault {
  readonly subject: About;

  constructor(thrown: unknown, subject: About) {
    super(refusalIn(thrown), {});
    this.subject = subject;
  }
}

/** Adds the request's task and sender to an error. CAP's error document contains both. */
export function concerning(thrown: unknown, subject: About): Error {
  return new Concerning(thrown, subject);
}

/**
 * Converts a thrown value to CAP's error_response, which also contains Depute's reason. CAP's error code is also the
 * HTTP status. (CAP "Error Response")
 */
export function toCapError(thrown: unknown, requestId: string): WireError & { body: JsonObject } {
  const subject: About = thrown instanceof Concerning ? thrown.subject : {};
  const refusal = refusalIn(thrown);
  const code = codeIn(refusal);
  const isOurs = refusal.reason === ErrorReason.INTERNAL;
  const body: JsonObject = {
    type: "error_response",
    task_id: subject.taskId ?? "",
    sender_id: PLATFORM,
    recipient_id: subject.senderId ?? "",
    error_code: code,
    error_message: isOurs ? "an internal error of the platform" : refusal.message,
    reason: reasonName(refusal.reason),
    metadata: isOurs ? { request_id: requestId } : refusal.metadata,
    ...(isOurs ? {} : violationsOf(refusal)),
    ...(thrown instanceof BrokenJson ? { position: { ...thrown.position } } : {}),
  };
  return { status: code, body };
}

/**
 * Returns the CAP error code of a refusal. If the request body cannot be read, the fault determines the code. Otherwise
 * the code is the one that the service stated in the refusal. If the service stated none, the refusal's reason
 * determines the code.
 */
function codeIn(refusal: DeputeError): number {
  const body = requestStatusOf(refusal);
  if (body !== undefined) return body;
  const errorCode = Number(refusal.metadata.error_code);
  return CAP_CODES.has(errorCode) ? errorCode : capCodeOf(refusal);
}
