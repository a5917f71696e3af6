import type { ServerResponse } from "node:http";
import { Code, type ConnectError } from "@connectrpc/connect";
import { codeToHttpStatus, errorToJson } from "@connectrpc/connect/protocol-connect";
import { DeputeError, ErrorReason } from "@depute/core";
import { CHALLENGE } from "./challenge.ts";
import type { DoorRefusal } from "./door.ts";
import { toConnectError, toWire, withNote } from "./errors-on-wire.ts";
import { setGrpcStatus } from "./grpc-status.ts";
import type { HttpRequest, HttpResponse } from "./http-routes.ts";
import type { ErrorNote } from "./service-manners.ts";

/** Answers with a JSON document. */
export function sendJson(
  response: HttpResponse,
  status: number,
  body: unknown,
  headers: Record<string, string> = {},
): void {
  sendText(response, status, JSON.stringify(body), { "content-type": "application/json", ...headers });
}

/** Answers with a text; the headers name its content type. */
export function sendText(
  response: HttpResponse,
  status: number,
  text: string,
  headers: Record<string, string>,
): void {
  sendBytes(response, status, Buffer.from(text), headers);
}

/** Answers with bytes; the headers name their content type. */
export function sendBytes(
  response: HttpResponse,
  status: number,
  bytes: Uint8Array,
  headers: Record<string, string>,
): void {
  const challenge = status === 401 ? CHALLENGE : {};
  writeHead(response, status, { "content-length": String(bytes.length), ...challenge, ...headers });
  response.end(bytes);
}

// The two forms of a response have the same method, with overloads that do not agree.
function writeHead(response: HttpResponse, status: number, headers: Record<string, string>): void {
  (response as ServerResponse).writeHead(status, headers);
}

/** Answers with a refusal in the Connect protocol's JSON form and its HTTP status. */
export function sendError(
  response: HttpResponse,
  error: ConnectError,
  headers: Record<string, string> = {},
): void {
  sendJson(response, codeToHttpStatus(error.code), errorToJson(error, undefined), headers);
}

/** Answers a path that is not served. */
export function sendUnknownPath(
  request: HttpRequest,
  response: HttpResponse,
  path: string,
  note?: ErrorNote,
): void {
  const method = path.slice(0, 200);
  const refusal = new DeputeError(ErrorReason.UNKNOWN_METHOD, `nothing is served at ${method}`, {
    metadata: { method },
  });
  sendRefusal(request, response, 404, refusal, note);
}

/** Answers a request whose headers are too long, where the protocol's own parser let them pass. */
export function sendHeadersTooLong(
  request: HttpRequest,
  response: HttpResponse,
  maxBytes: number,
  note?: ErrorNote,
): void {
  const refusal = new DeputeError(
    ErrorReason.LIMIT_EXCEEDED,
    `the headers are longer than ${maxBytes} bytes`,
    {
      metadata: { limit: "header_bytes", max: String(maxBytes) },
    },
  );
  sendRefusal(request, response, 431, refusal, note);
}

/** Answers a request that the server's door refuses. */
export function sendNotLetIn(
  request: HttpRequest,
  response: HttpResponse,
  refusal: DoorRefusal,
  note?: ErrorNote,
): void {
  sendRefusal(request, response, refusal.status, refusal.error, note);
}

/** Refuses a request before it is known to be an RPC: a gRPC client gets a gRPC status, anybody else HTTP's and JSON. */
function sendRefusal(
  request: HttpRequest,
  response: HttpResponse,
  httpStatus: number,
  refusal: DeputeError,
  note: ErrorNote | undefined,
): void {
  // Node resets an HTTP/2 stream whose body has no reader, and some clients then drop the answer.
  request.resume();
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
    writeHead(response, 200, { "content-type": type, ...status });
  } else {
    writeHead(response, 200, { "content-type": type });
    response.addTrailers(status);
  }
  response.end();
}

/** Answers a method that a known path does not have. */
export function sendMethodNotAllowed(response: HttpResponse, allow: readonly string[]): void {
  const error = new DeputeError(ErrorReason.UNKNOWN_METHOD, `use ${allow.join(" or ")}`, {
    metadata: { method: allow.join(",") },
  });
  sendJson(response, 405, errorToJson(toWire(error), undefined), { allow: allow.join(", ") });
}

/** Answers for what a route threw, unless it had begun to answer: then the connection says it. */
export function sendThrown(response: HttpResponse, thrown: unknown, requestId: string): ConnectError {
  const error = toConnectError(thrown, requestId);
  if (response.headersSent) response.destroy();
  // The rest of a body that is too long is not read. HTTP/2 knows no such header, and needs none.
  else if (error.code === Code.ResourceExhausted && !("stream" in response)) {
    sendError(response, error, { connection: "close" });
  } else sendError(response, error);
  return error;
}

/**
 * Reads a request's body.
 *
 * @throws DeputeError LIMIT_EXCEEDED as soon as it is longer than `maxBytes`
 */
export async function readBody(request: HttpRequest, maxBytes: number): Promise<Buffer> {
  const tooLong = () =>
    new DeputeError(ErrorReason.LIMIT_EXCEEDED, `the body is longer than ${maxBytes} bytes`, {
      metadata: { limit: "body_bytes", max: String(maxBytes) },
    });
  if (Number(request.headers["content-length"] ?? 0) > maxBytes) throw tooLong();
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    length += chunk.length;
    if (length > maxBytes) throw tooLong();
    chunks.push(chunk);
  }
  return Buffer.concat(chunks, length);
}
