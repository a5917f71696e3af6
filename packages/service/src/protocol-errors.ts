import { base64Decode } from "@bufbuild/protobuf/wire";
import { Code, ConnectError } from "@connectrpc/connect";
import {
  encodeEnvelope,
  type UniversalHandler,
  type UniversalServerRequest,
  type UniversalServerResponse,
} from "@connectrpc/connect/protocol";
import { codeToHttpStatus, errorFromJsonBytes, errorToJsonBytes } from "@connectrpc/connect/protocol-connect";
import { findTrailerError, grpcStatusOk, setTrailerStatus } from "@connectrpc/connect/protocol-grpc";
import { trailerFlag, trailerParse, trailerSerialize } from "@connectrpc/connect/protocol-grpc-web";
import { type DeputeError, invalid } from "@depute/core";
import { fromConnectError, reasonOf, toConnectError, toWire, withNote } from "./errors-on-wire.ts";
import { respellMessage } from "./grpc-status.ts";
import { bodyStatusOf, wrongMediaType } from "./http-body.ts";
import { methodNotAllowed } from "./http-refusal.ts";
import { jsonFieldFault } from "./json-faults.ts";
import type { ErrorNote } from "./service-manners.ts";

/** Serves one RPC, whose errors all have a reason. */
export type ReasonedHandler = (request: Parameters<UniversalHandler>[0]) => ReturnType<UniversalHandler>;

/**
 * Adds a reason to errors that Connect raises before any interceptor runs: invalid bytes, a message that is too long,
 * an unknown compression, or an invalid timeout.
 */
export function withReasons(
  handler: ReasonedHandler,
  described: Pick<UniversalHandler, "allowedMethods" | "method">,
  note?: ErrorNote,
): ReasonedHandler {
  return async (request) => {
    const fault = request.method === "GET" ? queryFault(request.url) : undefined;
    if (fault !== undefined)
      return bareError(codeToHttpStatus(Code.InvalidArgument), withNote(toWire(fault), note));
    const response = await handler(request);
    const bare =
      response.body === undefined ? bareRefusal(response.status, request, described, note) : undefined;
    if (bare !== undefined) return bare;
    const type = response.header?.get("content-type") ?? "";
    if (type.startsWith("application/grpc-web")) return webWithReason(response, note);
    if (type.startsWith("application/grpc")) return grpcWithReason(response, note);
    // Errors of Connect streams already have a reason, which an interceptor has added.
    if (response.status !== 200 && type === "application/json") return connectWithReason(response, note);
    return response;
  };
}

/** Returns the fault of a GET whose `message` is not base64, which Connect would report as an internal error. */
function queryFault(url: string): DeputeError | undefined {
  const query = new URL(url).searchParams;
  if (query.get("base64") !== "1") return undefined;
  try {
    base64Decode(query.get("message") ?? "");
    return undefined;
  } catch {
    return invalid("message", "is not base64url: encode it, or omit base64=1");
  }
}

/**
 * Returns an error with a reason for a wrong HTTP method or media type. Undefined for any other status. Connect itself
 * answers these two faults with an HTTP status only.
 */
function bareRefusal(
  status: number,
  request: UniversalServerRequest,
  { allowedMethods, method }: Pick<UniversalHandler, "allowedMethods" | "method">,
  note: ErrorNote | undefined,
): UniversalServerResponse | undefined {
  if (status === 405) {
    const refusal = methodNotAllowed(allowedMethods);
    return bareError(status, withNote(toWire(refusal), note), refusal.headers);
  }
  if (status !== 415) return undefined;
  const types = method.methodKind === "unary" ? UNARY_TYPES : STREAM_TYPES;
  const text =
    request.method === "GET"
      ? "a GET needs the query parameters message and encoding, which is json or proto; or use POST"
      : `the method does not accept this content type: use one of ${types.join(", ")}`;
  return bareError(status, withNote(toWire(wrongMediaType(types, text)), note));
}

const GRPC_TYPES = ["application/grpc", "application/grpc-web"];
/** The media types of unary methods. */
const UNARY_TYPES = ["application/json", "application/proto", ...GRPC_TYPES];
/** The media types of methods with a stream. Connect puts each message of a stream into an envelope. */
const STREAM_TYPES = ["application/connect+json", "application/connect+proto", ...GRPC_TYPES];

function bareError(
  status: number,
  error: ConnectError,
  headers: Readonly<Record<string, string>> = {},
): UniversalServerResponse {
  const body = errorToJsonBytes(error, undefined);
  const header = new Headers({
    "content-type": "application/json",
    "content-length": String(body.length),
    ...headers,
  });
  return { status, header, body: once(body) };
}

/**
 * Adds a reason to a gRPC error. The status of the error is in the trailer, which is complete only after the whole body
 * was read.
 */
function grpcWithReason(
  response: UniversalServerResponse,
  note: ErrorNote | undefined,
): UniversalServerResponse {
  const { body, trailer } = response;
  if (trailer === undefined || body === undefined) return response;
  return { ...response, body: thenCall(body, () => addReason(trailer, note)) };
}

/** Adds a reason to a gRPC trailer whose error has only a code. */
export function addReason(trailer: Headers, note?: ErrorNote): void {
  const status = trailer.get("grpc-status");
  if (status === null || status === grpcStatusOk) return;
  const error = trailer.has("grpc-status-details-bin") ? undefined : findTrailerError(trailer);
  if (error !== undefined) setTrailerStatus(trailer, withNote(reasoned(error), note));
  respellMessage(trailer);
}

async function* thenCall(body: AsyncIterable<Uint8Array>, done: () => void): AsyncIterable<Uint8Array> {
  yield* body;
  done();
}

/**
 * Adds a reason to a gRPC-Web error. The trailer is the last frame of the body, and the adapter sends each frame as one
 * chunk.
 */
function webWithReason(
  response: UniversalServerResponse,
  note: ErrorNote | undefined,
): UniversalServerResponse {
  const { body } = response;
  return body === undefined ? response : { ...response, body: withTrailerReason(body, note) };
}

async function* withTrailerReason(
  frames: AsyncIterable<Uint8Array>,
  note: ErrorNote | undefined,
): AsyncIterable<Uint8Array> {
  for await (const frame of frames) {
    if (frame[0] !== trailerFlag) {
      yield frame;
      continue;
    }
    const trailer = trailerParse(frame.subarray(PREFIX_BYTES));
    addReason(trailer, note);
    yield encodeEnvelope(trailerFlag, trailerSerialize(trailer));
  }
}

/** Number of bytes before the content of a gRPC-Web frame: one byte with flags, and four with the content's length. */
const PREFIX_BYTES = 5;

/** Adds a reason to a unary Connect error, whose body is JSON. */
async function connectWithReason(
  response: UniversalServerResponse,
  note: ErrorNote | undefined,
): Promise<UniversalServerResponse> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of response.body ?? []) chunks.push(chunk);
  const bytes = Buffer.concat(chunks);
  const header = new Headers(response.header);
  // Only long errors are compressed. Long errors come from an interceptor and already have a reason.
  const error = header.has("content-encoding") ? undefined : parse(bytes);
  if (error === undefined) return { ...response, body: once(bytes) };
  const better = reasonOf(error) === undefined ? withNote(reasoned(error), note) : error;
  const status = httpStatusOf(better);
  if (better === error) return { ...response, status, body: once(bytes) };
  const body = errorToJsonBytes(better, undefined);
  header.set("content-length", String(body.byteLength));
  return { ...response, status, header, body: once(body) };
}

/**
 * Returns the HTTP status of a unary error: the status that Connect defines for its code, except 408 and 413 for a
 * refused body. Connect clients read the code from the JSON error, and not from the status.
 */
export function httpStatusOf(error: ConnectError): number {
  const mayBeBody = error.code === Code.ResourceExhausted || error.code === Code.DeadlineExceeded;
  return (mayBeBody ? bodyStatusOf(fromConnectError(error)) : undefined) ?? codeToHttpStatus(error.code);
}

/** Returns an error in Connect's form, with its own reason or the reason that its code means. */
export function withReason(error: ConnectError): ConnectError {
  return reasonOf(error) === undefined ? reasoned(error) : error;
}

function parse(bytes: Uint8Array): ConnectError | undefined {
  try {
    return errorFromJsonBytes(bytes, undefined, new ConnectError("not an error"));
  } catch {
    return undefined;
  }
}

/**
 * Returns a copy of the error as an error of this server. The original was parsed from a response, so it would count as
 * an error of another server.
 */
function reasoned({ code, rawMessage }: ConnectError): ConnectError {
  const fault = code === Code.InvalidArgument ? jsonFieldFault(rawMessage) : undefined;
  if (fault !== undefined) return toWire(invalid(fault.field, fault.problem));
  return toConnectError(new ConnectError(rawMessage, code));
}

async function* once(bytes: Uint8Array): AsyncIterable<Uint8Array> {
  yield bytes;
}
