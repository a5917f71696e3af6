import { constants, type ServerHttp2Stream } from "node:http2";
import type { Readable } from "node:stream";
import { systemTimers } from "@depute/core";
import type { HttpRequest, HttpResponse } from "./http-routes.ts";

/**
 * Limits, in bytes and in milliseconds, up to which the unread bytes of a refused body are discarded. If the server
 * closed the connection with unread bytes, TCP would reset it, and the client could lose the response (RFC 9112 section
 * 9.6).
 */
export const MAX_DISCARDED_BYTES = 4 * 1024 * 1024;
export const MAX_DISCARD_MS = 1000;

const NO_BYTES = new Uint8Array();

/** Whether a part of the request's body is still unread. */
export function isBodyUnread(request: HttpRequest): boolean {
  if (request.complete) return false;
  if ("stream" in request) return !request.stream.endAfterHeaders;
  const { "content-length": length = "0", "transfer-encoding": encoding } = request.headers;
  return encoding !== undefined || length !== "0";
}

/** Returns the headers of a response that leaves a body unread: `connection: close` for HTTP/1.1; none for HTTP/2. */
export function closingHeaders(response: HttpResponse): Record<string, string> {
  return !("stream" in response) && isBodyUnread(response.req) ? { connection: "close" } : {};
}

/**
 * Ends a response whose head was written. Discards an unread body up to MAX_DISCARDED_BYTES and MAX_DISCARD_MS. Then
 * HTTP/1.1 closes the connection. HTTP/2 resets the stream only if a limit was reached, without an error (RFC 9113
 * section 8.1). A response to HEAD has no bytes.
 */
export function endAnswer(response: HttpResponse, bytes: Uint8Array): void {
  const { req: request } = response;
  const body = request.method === "HEAD" ? NO_BYTES : bytes;
  if (!isBodyUnread(request)) {
    finish(response, body);
    return;
  }
  if ("stream" in response) {
    const { stream } = response;
    finish(response, body);
    discardStream(stream, request);
    return;
  }
  // The response has a `content-length`, so the client knows that it is complete before the connection closes.
  if (body.length > 0) response.write(body);
  else response.flushHeaders();
  discard(request, () => response.end());
}

function finish(response: HttpResponse, bytes: Uint8Array): void {
  if (bytes.length === 0) response.end();
  else response.end(bytes);
}

/**
 * Discards the unread bytes of a stream's body. If they exceed a limit, resets the stream without an error.
 *
 * @param body the source of the unread bytes, if it is not the stream itself
 */
export function discardStream(stream: ServerHttp2Stream, body: Readable = stream): void {
  discard(body, (hasEnded) => {
    // If the body has ended, the stream is not reset, because it may still have to send its trailers.
    if (!hasEnded) stream.close(constants.NGHTTP2_NO_ERROR);
  });
}

/** Reads and discards a body. `done` is called once, at the end of the body or at a limit. */
function discard(source: Readable, done: (hasEnded: boolean) => void): void {
  let remainingBytes = MAX_DISCARDED_BYTES;
  const stop = (hasEnded: boolean): void => {
    cancel();
    source.off("data", onData).off("end", onEnd).off("close", onEnd);
    done(hasEnded);
  };
  const onEnd = (): void => stop(true);
  const onData = (chunk: Buffer): void => {
    remainingBytes -= chunk.length;
    if (remainingBytes >= 0) return;
    source.pause();
    stop(false);
  };
  const cancel = systemTimers.after(MAX_DISCARD_MS, () => stop(false));
  source.on("error", () => {});
  source.on("data", onData);
  source.on("end", onEnd);
  source.on("close", onEnd);
  source.resume();
}
