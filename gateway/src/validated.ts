import type { ServerResponse } from "node:http";
import type { HttpRequest, HttpResponse } from "@depute/service";

/** A document that a client can ask again for only when it has changed. (RFC 9110 section 8.8) */
export interface Validated {
  readonly bytes: Uint8Array;
  readonly contentType: string;
  readonly cacheControl: string;
  /** A strong one, with its quotes. */
  readonly etag: string;
  /** Epoch ms; absent for what has no date of its own. */
  readonly modifiedMs?: number;
}

/** Answers with a document, or with its headers alone, or says that the client has it already. */
export function sendValidated(request: HttpRequest, response: HttpResponse, document: Validated): void {
  const { bytes, contentType, cacheControl, etag, modifiedMs } = document;
  const isKnown = isUnchanged(request, document);
  // The two forms of a response have the same methods, with overloads that do not agree.
  const answer = response as ServerResponse;
  answer.writeHead(isKnown ? 304 : 200, {
    etag,
    ...(modifiedMs !== undefined && { "last-modified": new Date(wholeSeconds(modifiedMs)).toUTCString() }),
    "cache-control": cacheControl,
    ...(isKnown ? {} : { "content-type": contentType, "content-length": String(bytes.length) }),
  });
  answer.end(isKnown || request.method === "HEAD" ? undefined : bytes);
}

/** RFC 9110 section 13.2.2: the entity tag decides where one was sent, the date otherwise. */
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
