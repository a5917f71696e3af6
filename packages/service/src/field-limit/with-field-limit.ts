import { promisify } from "node:util";
import { gunzip } from "node:zlib";
import { type DescMethod, getOption, hasOption } from "@bufbuild/protobuf";
import type { UniversalHandler } from "@connectrpc/connect/protocol";
import { max_fields } from "@depute/contracts/depute/limits/v1/options_pb";
import { DeputeError, ErrorReason } from "@depute/core";
import { toWire } from "../errors-on-wire.ts";
import { hasMoreFields, hasMoreJsonValues } from "./count-fields.ts";

type Request = Parameters<UniversalHandler>[0];
type Handle = (request: Request) => ReturnType<UniversalHandler>;

/** How many fields a request of a method may hold; undefined for any number. */
export function maxFieldsOf(method: DescMethod): number | undefined {
  return hasOption(method, max_fields) ? getOption(method, max_fields) || undefined : undefined;
}

/** Whether a message that came whole may be decoded. */
export function mayDecode(method: DescMethod, max: number, bytes: Uint8Array, binary: boolean): boolean {
  return binary ? !hasMoreFields(method.input, bytes, max) : !hasMoreJsonValues(bytes, max);
}

/**
 * Holds a unary method's requests to the number of fields that its contract names, before they are decoded: they are
 * refused with LIMIT_EXCEEDED. What cannot be read as a message is left to the handler.
 *
 * @param maxBytes of one message; what is longer is left to the handler, too
 */
export function withFieldLimit(handler: UniversalHandler, maxBytes: number): Handle {
  const { method } = handler;
  const max = maxFieldsOf(method);
  if (max === undefined || method.methodKind !== "unary") return handler;
  return (request) => {
    const { body } = request;
    // A message in the address, as Connect's GET has it, is as short as headers are; a parsed one is not ours.
    if (typeof body !== "object" || body === null || !(Symbol.asyncIterator in body)) return handler(request);
    return handler({ ...request, body: looked(method, max, maxBytes, request.header, body) });
  };
}

/** A body that breaks off with the refusal is answered with it in the words of its protocol. */
async function* looked(
  method: DescMethod,
  max: number,
  maxBytes: number,
  header: Headers,
  body: AsyncIterable<Uint8Array>,
): AsyncIterable<Uint8Array> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  // Not `for await`: leaving that would end the request, and with HTTP/1.1 the connection before its answer.
  const reader = body[Symbol.asyncIterator]();
  for (let next = await reader.next(); next.done !== true; next = await reader.next()) {
    chunks.push(next.value);
    length += next.value.length;
    if (length <= maxBytes + PREFIX_BYTES) continue;
    // Too long for the handler, which says so before it decodes anything.
    try {
      yield* chunks;
    } finally {
      await discard(reader, maxBytes);
    }
    return;
  }
  const whole = Buffer.concat(chunks, length);
  const type = header.get("content-type") ?? "";
  for await (const message of messagesIn(whole, type, header, maxBytes)) {
    if (!mayDecode(method, max, message, !type.endsWith("json"))) throw toWire(tooManyFields(max));
  }
  yield whole;
}

/** Reads what nobody wants, as far as that is no more than this: then the connection can be used again. */
async function discard(reader: AsyncIterator<Uint8Array>, maxBytes: number): Promise<void> {
  for (let left = maxBytes; left >= 0; ) {
    const { done, value } = await reader.next();
    if (done === true) return;
    left -= value.length;
  }
}

function tooManyFields(max: number): DeputeError {
  return new DeputeError(ErrorReason.LIMIT_EXCEEDED, `the request holds more than ${max} fields`, {
    metadata: { limit: "fields", max: String(max) },
  });
}

/** A flag and the message's length. */
const PREFIX_BYTES = 5;
const COMPRESSED = 1;

/** The messages of a body: all that it is for Connect, in envelopes for gRPC. */
async function* messagesIn(
  body: Buffer,
  type: string,
  header: Headers,
  maxBytes: number,
): AsyncIterable<Uint8Array> {
  if (!type.startsWith("application/grpc")) {
    const message = await unpacked(body, header.get("content-encoding") === "gzip", maxBytes);
    if (message !== undefined) yield message;
    return;
  }
  for (let at = 0; at + PREFIX_BYTES <= body.length; ) {
    const end = at + PREFIX_BYTES + body.readUInt32BE(at + 1);
    const isPacked = ((body[at] ?? 0) & COMPRESSED) !== 0;
    const message = await unpacked(body.subarray(at + PREFIX_BYTES, end), isPacked, maxBytes);
    if (message !== undefined) yield message;
    at = end;
  }
}

/** Undefined for what does not unpack, or to too much: the handler refuses both. */
async function unpacked(
  bytes: Uint8Array,
  isPacked: boolean,
  maxBytes: number,
): Promise<Uint8Array | undefined> {
  if (!isPacked || bytes.length === 0) return bytes;
  try {
    return await promisify(gunzip)(bytes, { maxOutputLength: maxBytes });
  } catch {
    return undefined;
  }
}
