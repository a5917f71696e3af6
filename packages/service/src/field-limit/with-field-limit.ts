import { promisify } from "node:util";
import { gunzip } from "node:zlib";
import { type DescMethod, getOption, hasOption } from "@bufbuild/protobuf";
import type { UniversalHandler } from "@connectrpc/connect/protocol";
import { max_fields } from "@depute/contracts/depute/limits/v1/options_pb";
import { DeputeError, ErrorReason, invalid, jsonFaultText, scanJson } from "@depute/core";
import { toWire } from "../errors-on-wire.ts";
import { hasMoreFields, hasMoreJsonValues } from "./count-fields.ts";

type Request = Parameters<UniversalHandler>[0];
type Handle = (request: Request) => ReturnType<UniversalHandler>;

/** How many fields a request of a method may hold; undefined for any number. */
export function maxFieldsOf(method: DescMethod): number | undefined {
  return hasOption(method, max_fields) ? getOption(method, max_fields) || undefined : undefined;
}

/** Why a message that came whole may not be decoded; undefined for one that may. */
export function decodingFault(
  method: DescMethod,
  max: number | undefined,
  bytes: Uint8Array,
  binary: boolean,
): DeputeError | undefined {
  if (max !== undefined && (binary ? hasMoreFields(method.input, bytes, max) : hasMoreJsonValues(bytes, max)))
    return tooMany("fields", max, `the request holds more than ${max} fields`);
  return binary ? undefined : jsonFault(bytes);
}

/** Most bytes of a request in JSON. It is read in more passes than one in binary, and all in one go. */
export const MAX_JSON_REQUEST_BYTES = 2 * 1024 * 1024;

function jsonFault(bytes: Uint8Array): DeputeError | undefined {
  if (bytes.length > MAX_JSON_REQUEST_BYTES) {
    const text = `the request's JSON is longer than ${MAX_JSON_REQUEST_BYTES} bytes: send it in binary`;
    return tooMany("json_bytes", MAX_JSON_REQUEST_BYTES, text);
  }
  const fault = scanJson(utf8.decode(bytes));
  if (fault === undefined) return undefined;
  const text = `the request's JSON is refused: ${jsonFaultText(fault)}`;
  if (fault.kind === "duplicate_member") return invalid(fault.name.slice(0, 64).toWellFormed(), text);
  return tooMany(fault.kind === "too_deep" ? "json_depth" : "json_values", fault.max, text);
}

const utf8 = new TextDecoder();

/**
 * Looks at a method's requests before they are decoded, because a message is decoded in one go: at the number of fields
 * that its contract names, and at depth, values and repeated members of JSON. What cannot be read as a message is left
 * to the handler.
 *
 * @param maxBytes of one message after decompression; longer messages are left to the handler
 */
export function withFieldLimit(handler: UniversalHandler, maxBytes: number): Handle {
  const { method } = handler;
  const { methodKind } = method;
  if (methodKind !== "unary" && methodKind !== "server_streaming") return handler;
  const max = methodKind === "unary" ? maxFieldsOf(method) : undefined;
  return (request) => {
    const { body } = request;
    if (max === undefined && !isJson(request.header)) return handler(request);
    // A message in the address, as Connect's GET has it, is as short as headers are; a parsed one is not ours.
    if (typeof body !== "object" || body === null || !(Symbol.asyncIterator in body)) return handler(request);
    return handler({ ...request, body: looked(method, max, maxBytes, request.header, body) });
  };
}

/** A body that breaks off with the refusal is answered with it in the words of its protocol. */
async function* looked(
  method: DescMethod,
  max: number | undefined,
  maxBytes: number,
  header: Headers,
  body: AsyncIterable<Uint8Array>,
): AsyncIterable<Uint8Array> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of body) chunks.push(chunk);
  const whole = Buffer.concat(chunks);
  const type = header.get("content-type") ?? "";
  for await (const message of messagesIn(whole, type, header, maxBytes)) {
    const fault = decodingFault(method, max, message, !isJson(header));
    if (fault !== undefined) throw toWire(fault);
  }
  yield whole;
}

function tooMany(limit: string, max: number, text: string): DeputeError {
  return new DeputeError(ErrorReason.LIMIT_EXCEEDED, text, { metadata: { limit, max: String(max) } });
}

/** Whether messages are in JSON, by the media type without its parameters. */
function isJson(header: Headers): boolean {
  return /^application\/(?:json|[a-z-]+\+json)\s*(?:;|$)/i.test(header.get("content-type") ?? "");
}

/** A flag and the message's length. */
const PREFIX_BYTES = 5;
const COMPRESSED = 1;

/** The messages of a body: all that it is for unary Connect, in envelopes otherwise. */
async function* messagesIn(
  body: Buffer,
  type: string,
  header: Headers,
  maxBytes: number,
): AsyncIterable<Uint8Array> {
  if (!/^application\/(?:grpc|connect\+)/i.test(type)) {
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
