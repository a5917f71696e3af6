import { Code, ConnectError } from "@connectrpc/connect";
import {
  encodeEnvelope,
  type UniversalHandler,
  type UniversalServerResponse,
} from "@connectrpc/connect/protocol";
import { codeToHttpStatus, errorFromJsonBytes, errorToJsonBytes } from "@connectrpc/connect/protocol-connect";
import { findTrailerError, grpcStatusOk, setTrailerStatus } from "@connectrpc/connect/protocol-grpc";
import { trailerFlag, trailerParse, trailerSerialize } from "@connectrpc/connect/protocol-grpc-web";
import { DeputeError, ErrorReason, invalid } from "@depute/core";
import { fromConnectError, reasonOf, toConnectError, toWire, withNote } from "./errors-on-wire.ts";
import { respellMessage } from "./grpc-status.ts";
import { bodyStatusOf, wrongMediaType } from "./http-body.ts";
import type { ErrorNote } from "./service-manners.ts";

/** Answers one RPC. */
export type ReasonedHandler = (request: Parameters<UniversalHandler>[0]) => ReturnType<UniversalHandler>;

/**
 * Gives a reason to the errors that Connect answers with before any interceptor runs: bytes that are no message of the
 * contract, a message that is too long, a compression or a time limit that it does not understand.
 */
export function withReasons(
  handler: ReasonedHandler,
  allowed: readonly string[],
  note?: ErrorNote,
): ReasonedHandler {
  return async (request) => {
    const response = await handler(request);
    const bare = response.body === undefined ? bareRefusal(response.status, allowed, note) : undefined;
    if (bare !== undefined) return bare;
    const type = response.header?.get("content-type") ?? "";
    if (type.startsWith("application/grpc-web")) return webWithReason(response, note);
    if (type.startsWith("application/grpc")) return grpcWithReason(response, note);
    // Errors of Connect streams come through the interceptors, which give them their reasons.
    if (response.status !== 200 && type === "application/json") return connectWithReason(response, note);
    return response;
  };
}

/** Connect answers another method, and another media type, with a status alone. */
function bareRefusal(
  status: number,
  allowed: readonly string[],
  note: ErrorNote | undefined,
): UniversalServerResponse | undefined {
  if (status === 405) {
    return bareError(status, withNote(toWire(wrongMethod(allowed)), note), { allow: allowed.join(", ") });
  }
  if (status !== 415) return undefined;
  const text = `the content type is none of this method's: use one of ${RPC_TYPES.join(", ")}`;
  return bareError(status, withNote(toWire(wrongMediaType(RPC_TYPES, text)), note));
}

/** What clients of the three protocols send; some methods take a part of these. */
const RPC_TYPES = [
  "application/json",
  "application/proto",
  "application/connect+json",
  "application/connect+proto",
  "application/grpc",
  "application/grpc-web",
];

/** The refusal of a method that a known path does not have. */
export function wrongMethod(allowed: readonly string[]): DeputeError {
  return new DeputeError(ErrorReason.UNKNOWN_METHOD, `use ${allowed.join(" or ")}`, {
    metadata: { method: allowed.join(",") },
  });
}

function bareError(
  status: number,
  error: ConnectError,
  headers: Record<string, string> = {},
): UniversalServerResponse {
  const body = errorToJsonBytes(error, undefined);
  const header = new Headers({
    "content-type": "application/json",
    "content-length": String(body.length),
    ...headers,
  });
  return { status, header, body: once(body) };
}

/** gRPC's status stands in the trailer, which is complete when the body has been read. */
function grpcWithReason(
  response: UniversalServerResponse,
  note: ErrorNote | undefined,
): UniversalServerResponse {
  const { body, trailer } = response;
  if (trailer === undefined || body === undefined) return response;
  return { ...response, body: thenCall(body, () => addReason(trailer, note)) };
}

/** Completes the error that stands in a gRPC trailer, if one does and nothing but its code says what it is. */
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

/** gRPC-Web's trailer is the body's last frame; the adapter gives each frame as one chunk. */
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

/** Bytes before the content of a gRPC-Web frame: one of flags and four of the content's length. */
const PREFIX_BYTES = 5;

/** A unary Connect error is a JSON body. */
async function connectWithReason(
  response: UniversalServerResponse,
  note: ErrorNote | undefined,
): Promise<UniversalServerResponse> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of response.body ?? []) chunks.push(chunk);
  const bytes = Buffer.concat(chunks);
  const header = new Headers(response.header);
  // A compressed error is one that an interceptor made and that is long; it has its reason.
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
 * The HTTP status of a unary error: Connect's for its code, but 413 and 408 for a refused body. Clients of Connect take the
 * code from the JSON of an error, whatever its status is.
 */
export function httpStatusOf(error: ConnectError): number {
  const mayBeBody = error.code === Code.ResourceExhausted || error.code === Code.DeadlineExceeded;
  return (mayBeBody ? bodyStatusOf(fromConnectError(error)) : undefined) ?? codeToHttpStatus(error.code);
}

/** An error as Connect answers it: with a reason of the vocabulary, or the one that its code means. */
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

/** Read back from the answer, it looks like another server's: it is made anew, as this server raised it. */
function reasoned({ code, rawMessage }: ConnectError): ConnectError {
  const unknown = code === Code.InvalidArgument ? UNKNOWN_FIELD.exec(rawMessage)?.[1] : undefined;
  if (unknown !== undefined) {
    const field = unknown.slice(0, 64).toWellFormed();
    return toWire(invalid(field, "is no field of this request: leave it out, or look for a misspelling"));
  }
  return toConnectError(new ConnectError(rawMessage, code));
}

/** How protobuf names a member of JSON that a message does not have. */
const UNKNOWN_FIELD = /: key "(.*)" is unknown$/s;

async function* once(bytes: Uint8Array): AsyncIterable<Uint8Array> {
  yield bytes;
}
