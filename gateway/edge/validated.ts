import type { ServerResponse } from "node:http";
import type { HttpRequest, HttpResponse } from "@depute/service";

/** A document with validators, by which a client can ask whether the document has changed. (RFC 9110 section 8.8) */
export interface Validated {
  readonly bytes: Uint8Array;
  readonly contentType: string;
  readonly cacheControl: string;
  /** The content coding of `bytes`, such as `gzip`, if the client accepts it; absent if the bytes are not encoded. */
  readonly contentEncoding?: string;
  /** A strong entity tag, including its quotes. */
  readonly etag: string;
  /** Time of the last change, in milliseconds since the Unix epoch; absent for a document without a date. */
  readonly modifiedMs?: number;
}

/**
 * Answers a GET request with the document, and a HEAD request with only the headers. Answers 304 if the client already
 * has the document.
 */
export function sendValidated(request: HttpRequest, response: HttpResponse, document: Validated): void {
  const { bytes, contentType, contentEncoding, cacheControl, etag, modifiedMs } = document;
  const isKnown = isUnchanged(request, document);
  // This type assertion is needed because TypeScript cannot unify the overloads of HTTP/1.1 and HTTP/2 responses, which
  // have the same methods.
  const answer = response as ServerResponse;
  answer.writeHead(isKnown ? 304 : 200, {
    etag,
    ...(modifiedMs !== undefined && { "last-modified": new Date(wholeSeconds(modifiedMs)).toUTCString() }),
    "cache-control": cacheControl,
    ...(contentEncoding !== undefined && { "content-encoding": contentEncoding }),
    ...(isKnown ? {} : { "content-type": contentType, "content-length": String(bytes.length) }),
  });
  answer.end(isKnown || request.method === "HEAD" ? undefined : bytes);
}

/**
 * Whether the client already has the document. Compares the entity tag if the client sent one, otherwise the date. (RFC
 * 9110 section 13.2.2)
 */
function isUnchanged({ headers }: HttpRequest, { etag, modifiedMs }: Validated): boolean {
  const tags = headers["if-none-match"];
  if (tags !== undefined) {
    return tags.split(",").some((tag) => tag.trim() === "*" || tag.trim().replace(/^W\//, "") === etag);
  }
  const since = Date.parse(headers["if-modified-since"] ?? "");
  return modifiedMs !== undefined && Number.isFinite(since) && wholeSeconds(modifiedMs) <= since;
}

function wholeSeconds(ms: number): number {
  return Math.floor(ms / 1000) * 1000;
}
