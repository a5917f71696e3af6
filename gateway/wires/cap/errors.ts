import type { JsonObject } from "@bufbuild/protobuf";
import { CAP_CODES, capCodeOf, DeputeError, ErrorReason, reasonName } from "@depute/core";
import { bodyStatusOf } from "@depute/service";
import type { WireError as JsonFault } from "@depute/wire";
import { refusalOf } from "@depute/wire";
import type { WireError } from "../../src/edge/route.ts";
import { refusalIn, violationsOf, WireFault } from "../../src/fault.ts";

/** Who speaks where the platform does; no participant has the id. */
const PLATFORM = "depute";

/** Where a text stops being JSON. */
export interface TextPosition {
  /** Characters from the beginning, from 0. */
  readonly offset: number;
  /** From 1. */
  readonly line: number;
  /** Characters of the line, from 1. */
  readonly column: number;
}

/** The refusal of a text that is no JSON, with the place where it stops being that. */
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

/** The place of a character in a text. */
export function positionOf(text: string, offset: number): TextPosition {
  const before = text.slice(0, offset);
  const line = before.split("\n").length;
  return { offset, line, column: offset - before.lastIndexOf("\n") };
}

/** What a request was about, as far as it could be read. */
export interface About {
  readonly taskId?: string;
  readonly senderId?: string;
}

/** A refusal, with what the request was about. */
class Concerning extends WireFault {
  readonly about: About;

  constructor(thrown: unknown, about: About) {
    super(refusalIn(thrown), {});
    this.about = about;
  }
}

/** The same failure, with what the request was about for its error. */
export function concerning(thrown: unknown, about: About): Error {
  return new Concerning(thrown, about);
}

/**
 * What the CAP wire answers for whatever was thrown: CAP's own error_response, its code in the status too, and beside it
 * the platform's reason. (CAP "Error Response")
 */
export function toCapError(thrown: unknown, requestId: string): WireError & { body: JsonObject } {
  const about: About = thrown instanceof Concerning ? thrown.about : {};
  const refusal = refusalIn(thrown);
  const code = codeIn(refusal);
  const isOurs = refusal.reason === ErrorReason.INTERNAL;
  const body: JsonObject = {
    type: "error_response",
    task_id: about.taskId ?? "",
    sender_id: PLATFORM,
    recipient_id: about.senderId ?? "",
    error_code: code,
    error_message: isOurs ? "a fault of the platform" : refusal.message,
    reason: reasonName(refusal.reason),
    metadata: isOurs ? { request_id: requestId } : refusal.metadata,
    ...(isOurs ? {} : violationsOf(refusal)),
    ...(thrown instanceof BrokenJson ? { position: { ...thrown.position } } : {}),
  };
  return { status: code, body };
}

/** The code that the service gave the refusal; the table's, where it gave none. */
function codeIn(refusal: DeputeError): number {
  const body = bodyStatusOf(refusal);
  if (body !== undefined) return body;
  const given = Number(refusal.metadata.error_code);
  return CAP_CODES.has(given) ? given : capCodeOf(refusal);
}
