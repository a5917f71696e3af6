import type { IncomingHttpHeaders } from "node:http";
import type { Readable } from "node:stream";
import { Code, ConnectError } from "@connectrpc/connect";
import { DeputeError, ErrorReason, type Timers } from "@depute/core";
import { HttpRefusal } from "./http-refusal.ts";
import type { HttpRequest } from "./http-routes.ts";

/** The bounds of a request's body. */
export interface BodyLimits {
  readonly maxBytes: number;
  /**
   * Whether the body has gRPC's form: a flag, a length, and a message of at most `maxBytes` bytes. False when absent.
   */
  readonly isEnveloped?: boolean;
  /** The name of the size limit in refusals; `body_bytes` when absent. */
  readonly name?: "body_bytes" | "message_bytes";
  /** Maximum milliseconds from the call of readBody to the body's last byte. */
  readonly timeoutMs: number;
  readonly timers: Timers;
}

/**
 * Reads a whole body. If the body is refused, readBody reads no further bytes, and drops the bytes that it has read.
 * The response later discards the remaining bytes (see `endAnswer`).
 *
 * @param receivedChunks chunks of the body that were read before this call
 * @throws DeputeError LIMIT_EXCEEDED (`body_bytes`, or the limit's name) as soon as the body is known to be too long,
 * DEADLINE_EXCEEDED (`body_ms`) when it takes too long; ConnectError CANCELED when the client disconnects
 */
export function readBody(
  source: Readable & { readonly headers?: IncomingHttpHeaders },
  { maxBytes, isEnveloped = false, name = "body_bytes", timeoutMs, timers }: BodyLimits,
  receivedChunks: readonly Buffer[] = [],
): Promise<Buffer> {
  const most = maxBytes + (isEnveloped ? PREFIX_BYTES : 0);
  if (Number(source.headers?.["content-length"] ?? 0) > most)
    return Promise.reject(bodyTooLong(maxBytes, name));
  if (source.destroyed) return Promise.reject(clientLeft());
  return new Promise((resolve, reject) => {
    let chunks = [...receivedChunks];
    let length = chunks.reduce((sum, chunk) => sum + chunk.length, 0);
    const isTooLong = () => length > most || (isEnveloped && claimedBytes(chunks, length) > maxBytes);
    const settle = (): void => {
      cancel();
      source.off("data", onData).off("end", onEnd).off("close", onClose);
    };
    const refuse = (error: Error): void => {
      settle();
      source.pause();
      chunks = [];
      reject(error);
    };
    const onData = (chunk: Buffer): void => {
      length += chunk.length;
      chunks.push(chunk);
      if (isTooLong()) refuse(bodyTooLong(maxBytes, name));
    };
    const onEnd = (): void => {
      settle();
      resolve(Buffer.concat(chunks, length));
    };
    const onClose = (): void => refuse(clientLeft());
    if (isTooLong()) return reject(bodyTooLong(maxBytes, name));
    const cancel = timers.after(timeoutMs, () => refuse(bodyTooSlow(timeoutMs)));
    // A broken connection is handled by its "close" event. Without this listener the error would end the process.
    source.on("error", () => {});
    source.on("data", onData);
    source.on("end", onEnd);
    source.on("close", onClose);
    source.resume();
  });
}

/** Bytes before the message of a body in gRPC's form: a flag and the message's length. */
const PREFIX_BYTES = 5;

/**
 * Returns the length that the prefix of a body in gRPC's form states for the message; 0 until the prefix has arrived.
 */
function claimedBytes(chunks: Buffer[], length: number): number {
  const [first] = chunks;
  if (first === undefined || length < PREFIX_BYTES) return 0;
  const start = first.length < PREFIX_BYTES ? Buffer.concat(chunks, PREFIX_BYTES) : first;
  return start.readUInt32BE(1);
}

/**
 * Reads a body, which must have one of the given media types.
 *
 * @throws the errors of assertMediaType and readBody
 */
export async function takeBody(
  request: HttpRequest,
  types: readonly string[],
  limits: BodyLimits,
): Promise<Buffer> {
  assertMediaType(request.headers, types);
  return await readBody(request, limits);
}

/**
 * Refuses a body by its headers, before it is read.
 *
 * @param types the accepted media types, in lower case
 * @throws DeputeError INVALID_REQUEST with metadata `accepted_types` for any other `content-type`, and if there is a
 * `content-encoding`
 */
export function assertMediaType(headers: IncomingHttpHeaders, types: readonly string[]): void {
  const encoding = headers["content-encoding"] ?? "identity";
  if (encoding.toLowerCase() !== "identity") {
    throw wrongMediaType(types, "a content-encoding is not supported: send the body uncompressed");
  }
  if (types.includes(mediaTypeOf(headers["content-type"]))) return;
  throw wrongMediaType(types, `the content type must be ${inWords(types)}`);
}

/**
 * Returns the media type in a content-type header, without parameters, in lower case; empty when the header is absent.
 */
export function mediaTypeOf(contentType: string | undefined): string {
  return contentType?.split(";", 1)[0]?.trim().toLowerCase() ?? "";
}

/** Returns the error for a body whose media type the route does not accept. */
export function wrongMediaType(types: readonly string[], message: string): DeputeError {
  return new DeputeError(ErrorReason.INVALID_REQUEST, message, {
    metadata: { accepted_types: types.join(", ") },
  });
}

/** Returns the error for a body that is too long. */
function bodyTooLong(maxBytes: number, limit: string): DeputeError {
  return new DeputeError(
    ErrorReason.LIMIT_EXCEEDED,
    `the body is longer than ${maxBytes} bytes; send a shorter body`,
    {
      metadata: { limit, max: String(maxBytes) },
    },
  );
}

/** Returns the error for a body that takes too long to arrive. */
export function bodyTooSlow(timeoutMs: number): DeputeError {
  return new DeputeError(ErrorReason.DEADLINE_EXCEEDED, `the body did not arrive within ${timeoutMs} ms`, {
    metadata: { limit: "body_ms", max: String(timeoutMs) },
  });
}

/** Names of the limits that concern the size of a request. */
const TOO_LARGE = new Set(["body_bytes", "message_bytes", "json_bytes"]);

/**
 * Returns the HTTP status of a refusal that HTTP itself defines: 404, 405, 406, 408, 413 or 415 (RFC 9110 section
 * 15.5). Undefined for every other refusal.
 */
export function requestStatusOf(
  refusal: Pick<DeputeError, "reason" | "metadata">,
): HttpRefusal["status"] | 408 | 413 | 415 | undefined {
  return refusal instanceof HttpRefusal ? refusal.status : bodyStatusOf(refusal);
}

/** Returns the HTTP status of a refused body: 408, 413 or 415. Undefined for every other refusal. */
export function bodyStatusOf({
  reason,
  metadata,
}: Pick<DeputeError, "reason" | "metadata">): 408 | 413 | 415 | undefined {
  switch (reason) {
    case ErrorReason.LIMIT_EXCEEDED:
      return TOO_LARGE.has(metadata.limit ?? "") ? 413 : undefined;
    case ErrorReason.DEADLINE_EXCEEDED:
      return metadata.limit === "body_ms" ? 408 : undefined;
    case ErrorReason.INVALID_REQUEST:
      return metadata.accepted_types === undefined ? undefined : 415;
    default:
      return undefined;
  }
}

function clientLeft(): ConnectError {
  return new ConnectError("canceled", Code.Canceled);
}

function inWords(types: readonly string[]): string {
  const last = types.at(-1) ?? "";
  return types.length < 2 ? last : `${types.slice(0, -1).join(", ")} or ${last}`;
}
