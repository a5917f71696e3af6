import type { ServerResponse } from "node:http";
import type { HttpRequest, HttpResponse } from "@depute/service";
import type { PublishedDocument } from "./documents.ts";

/** Documents change with a release only; a cache may keep one for an hour without asking. */
const CACHE_CONTROL = "public, max-age=3600";

/** Answers with a published document, or with its headers alone, or says that the client has it already. */
export function sendDocument(
  request: HttpRequest,
  response: HttpResponse,
  document: PublishedDocument,
): void {
  const { bytes, contentType, etag, modifiedMs } = document;
  const isKnown = isUnchanged(request, document);
  const headers: Record<string, string> = {
    etag,
    "last-modified": new Date(modifiedMs).toUTCString(),
    "cache-control": CACHE_CONTROL,
    ...(isKnown ? {} : { "content-type": contentType, "content-length": String(bytes.length) }),
  };
  // The two forms of a response have the same methods, with overloads that do not agree.
  const answer = response as ServerResponse;
  answer.writeHead(isKnown ? 304 : 200, headers);
  answer.end(isKnown || request.method === "HEAD" ? undefined : bytes);
}

/** RFC 9110 section 13.2.2: the entity tag decides where one was sent, the date otherwise. */
function isUnchanged({ headers }: HttpRequest, { etag, modifiedMs }: PublishedDocument): boolean {
  const tags = headers["if-none-match"];
  if (tags !== undefined) {
    return tags.split(",").some((tag) => tag.trim() === "*" || tag.trim().replace(/^W\//, "") === etag);
  }
  const since = Date.parse(headers["if-modified-since"] ?? "");
  return Number.isFinite(since) && modifiedMs <= since;
}
