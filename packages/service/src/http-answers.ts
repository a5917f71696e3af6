import type { ServerResponse } from "node:http";
import type { JsonValue } from "@bufbuild/protobuf";
import type { ConnectError } from "@connectrpc/connect";
import { errorToJson } from "@connectrpc/connect/protocol-connect";
import { DeputeError, ErrorReason } from "@depute/core";
import { CHALLENGE } from "./challenge.ts";
import type { DoorRefusal } from "./door.ts";
import { toConnectError, toWire, withNote } from "./errors-on-wire.ts";
import { setGrpcStatus } from "./grpc-status.ts";
import { HttpRefusal, unknownPath } from "./http-refusal.ts";
import type { HttpRequest, HttpResponse, Refuse } from "./http-routes.ts";
import { httpStatusOf } from "./protocol-errors.ts";
import type { ErrorNote } from "./service-manners.ts";
import { closingHeaders, endAnswer } from "./unread-body.ts";

const NO_BYTES = new Uint8Array();

/** Sends a response with a JSON document. */
export function sendJson(
  response: HttpResponse,
  status: number,
  body: unknown,
  headers: Record<string, string> = {},
): void {
  sendText(response, status, JSON.stringify(body), { "content-type": "application/json", ...headers });
}

/** Sends a response with a text; the headers name its content type. */
export function sendText(
  response: HttpResponse,
  status: number,
  text: string,
  headers: Record<string, string>,
): void {
  sendBytes(response, status, Buffer.from(text), headers);
}

/** Sends a response with bytes; the headers name their content type. */
export function sendBytes(
  response: HttpResponse,
  status: number,
  bytes: Uint8Array,
  headers: Record<string, string>,
): void {
  const challenge = status === 401 ? CHALLENGE : {};
  writeHead(response, status, {
    "content-length": String(bytes.length),
    ...challenge,
    ...closingHeaders(response),
    ...headers,
  });
  endAnswer(response, bytes);
}

// Writes the head of a response. The cast is needed, because `writeHead` has different types for HTTP/1.1 and HTTP/2.
function writeHead(response: HttpResponse, status: number, headers: Record<string, string>): void {
  (response as ServerResponse).writeHead(status, headers);
}

/**
 * Sends a complete response with bytes and trailers, and discards an unread body of the request. With trailers, the
 * response has no `content-length`.
 */
export function sendWhole(
  response: HttpResponse,
  status: number,
  { headers, bytes, trailers }: { headers: Headers; bytes: Uint8Array; trailers?: Headers | undefined },
): void {
  const fields: Record<string, string> = { ...Object.fromEntries(headers), ...closingHeaders(response) };
  if (trailers === undefined) fields["content-length"] = String(bytes.length);
  writeHead(response, status, fields);
  if (trailers !== undefined) response.addTrailers(Object.fromEntries(trailers));
  endAnswer(response, bytes);
}

/** Sends a refusal in the Connect protocol's JSON form and with its HTTP status. */
export function sendError(
  response: HttpResponse,
  error: ConnectError,
  headers: Record<string, string> = {},
): void {
  sendJson(response, httpStatusOf(error), errorToJson(error, undefined), headers);
}

/** Answers a request to a path that no route serves. */
export function sendUnknownPath(
  request: HttpRequest,
  response: HttpResponse,
  path: string,
  note?: ErrorNote,
): void {
  sendRefusal(request, response, 404, unknownPath(path), note);
}

/** Refuses a request whose headers are too long, but were accepted by the HTTP parser. */
export function sendHeadersTooLong(
  request: HttpRequest,
  response: HttpResponse,
  maxBytes: number,
  note?: ErrorNote,
): void {
  const refusal = new DeputeError(
    ErrorReason.LIMIT_EXCEEDED,
    `the headers are longer than ${maxBytes} bytes; send shorter headers`,
    {
      metadata: { limit: "header_bytes", max: String(maxBytes) },
    },
  );
  sendRefusal(request, response, 431, refusal, note);
}

/** Sends the refusal of the server's Door (door.ts). */
export function sendNotLetIn(
  request: HttpRequest,
  response: HttpResponse,
  refusal: DoorRefusal,
  note?: ErrorNote,
): void {
  sendRefusal(request, response, refusal.status, refusal.error, note);
}

/**
 * Refuses a request before the server has determined whether it is an RPC. A gRPC client gets a gRPC status, any other
 * client an HTTP status and JSON.
 */
function sendRefusal(
  request: HttpRequest,
  response: HttpResponse,
  httpStatus: number,
  refusal: DeputeError,
  note: ErrorNote | undefined,
): void {
  const error = withNote(toWire(refusal), note);
  const type = request.headers["content-type"] ?? "";
  if (!type.startsWith("application/grpc")) {
    sendJson(response, httpStatus, errorToJson(error, undefined));
    return;
  }
  const trailer = new Headers();
  setGrpcStatus(trailer, error);
  const status = Object.fromEntries(trailer);
  if (type.startsWith("application/grpc-web")) {
    writeHead(response, 200, { "content-type": type, ...closingHeaders(response), ...status });
  } else {
    writeHead(response, 200, { "content-type": type, ...closingHeaders(response) });
    response.addTrailers(status);
  }
  endAnswer(response, NO_BYTES);
}

/** Writes an HTTP refusal in the Connect protocol's JSON form. */
export const sendHttpRefusal: Refuse = (_, response, refusal) => {
  sendJson(response, refusal.status, errorToJson(toWire(refusal), undefined), { ...refusal.headers });
};

/** Converts an exception to the Connect protocol's JSON form and its HTTP status. */
export function errorAnswer(thrown: unknown, requestId: string): { status: number; body: JsonValue } {
  const error = toConnectError(thrown, requestId);
  const status = thrown instanceof HttpRefusal ? thrown.status : httpStatusOf(error);
  return { status, body: errorToJson(error, undefined) as JsonValue };
}

/** Sends the error response for an exception of a route. If the response has begun, closes the connection instead. */
export function sendThrown(response: HttpResponse, thrown: unknown, requestId: string): ConnectError {
  const error = toConnectError(thrown, requestId);
  if (response.headersSent) response.destroy();
  else sendError(response, error);
  return error;
}
