import { promisify } from "node:util";
import { gunzip } from "node:zlib";
import { type DescMethod, getOption, hasOption } from "@bufbuild/protobuf";
import type { UniversalHandler } from "@connectrpc/connect/protocol";
import { max_fields } from "@depute/contracts/depute/rpc/v1/method_options_pb";
import { DeputeError, ErrorReason, invalid, jsonFaultText, scanJson } from "@depute/core";
import { toWire } from "../errors-on-wire.ts";
import { hasMoreFields, hasMoreJsonValues } from "./count-fields.ts";

type Request = Parameters<UniversalHandler>[0];
type Handle = (request: Request) => ReturnType<UniversalHandler>;

/** Maximum number of fields in a request of a method; undefined for no limit. */
export function maxFieldsOf(method: DescMethod): number | undefined {
  return hasOption(method, max_fields) ? getOption(method, max_fields) || undefined : undefined;
}

/** Returns the error of a complete message that must not be decoded; undefined if it may be decoded. */
export function decodingFault(
  method: DescMethod,
  max: number | undefined,
  bytes: Uint8Array,
  binary: boolean,
): DeputeError | undefined {
  if (max !== undefined && (binary ? hasMoreFields(method.input, bytes, max) : hasMoreJsonValues(bytes, max)))
    return tooMany("fields", max, `the request has more than ${max} fields; send fewer`);
  return binary ? undefined : jsonFault(bytes);
}

/**
 * Maximum size of a JSON request in bytes. The limit is lower than for the binary form, because parsing JSON
 * takes several passes that cannot be interrupted.
 */
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
 * Checks a method's requests before they are decoded, because decoding cannot be interrupted. The checks are: the
 * contract's maximum number of fields and, for JSON, the size, the depth, the number of values and repeated members. A
 * body that is not a message passes unchecked, and the handler refuses this body.
 *
 * @param maxBytes limit of one message after decompression; the handler refuses longer messages
 */
export function withFieldLimit(handler: UniversalHandler, maxBytes: number): Handle {
  const { method } = handler;
  const { methodKind } = method;
  if (methodKind !== "unary" && methodKind !== "server_streaming") return handler;
  const max = methodKind === "unary" ? maxFieldsOf(method) : undefined;
  return (request) => {
    const { body } = request;
    if (max === undefined && !isJson(request.header)) return handler(request);
    // A body that is not a stream of bytes needs no check. In Connect's GET, the message is in the URL, whose length is
    // limited like headers. A parsed body does not come from a client.
    if (typeof body !== "object" || body === null || !(Symbol.asyncIterator in body)) return handler(request);
    return handler({ ...request, body: looked(method, max, maxBytes, request.header, body) });
  };
}

/**
 * Yields the whole body after all its messages have passed the checks. If a message does not pass, throws the refusal,
 * which the adapter converts to the call's protocol.
 */
async function* looked(
  method: DescMethod,
  max: number | undefined,
  maxBytes: number,
  header: Headers,
  body: AsyncIterable<Uint8Array>,
): AsyncIterable<Uint8Array> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of body) chunks.push(chunk);
  const fullBody = Buffer.concat(chunks);
  const type = header.get("content-type") ?? "";
  for await (const message of messagesIn(fullBody, type, header, maxBytes)) {
    const fault = decodingFault(method, max, message, !isJson(header));
    if (fault !== undefined) throw toWire(fault);
  }
  yield fullBody;
}

function tooMany(limit: string, max: number, text: string): DeputeError {
  return new DeputeError(ErrorReason.LIMIT_EXCEEDED, text, { metadata: { limit, max: String(max) } });
}

/** Whether the content type is JSON. Its parameters are ignored. */
function isJson(header: Headers): boolean {
  return /^application\/(?:json|[a-z-]+\+json)\s*(?:;|$)/i.test(header.get("content-type") ?? "");
}

/** Bytes before each message of gRPC and of Connect's streams: a flag and the message's length. */
const PREFIX_BYTES = 5;
const COMPRESSED = 1;

/**
 * Yields the messages of a body. The body of a unary Connect call is one message; any other body is a sequence of
 * messages, each after such a prefix.
 */
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

/** Decompresses a message. Returns undefined for data that is invalid or too long, which the handler refuses. */
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
