import { hash } from "node:crypto";
import type { ServerResponse } from "node:http";
import type { HttpRequest, HttpResponse } from "@depute/service";
import type { Answer } from "./methods.ts";

/** What was proved once stays so; what is present has to be asked for again. */
const FOREVER = "public, max-age=31536000, immutable";
const ASK_AGAIN = "no-cache";

/** Answers with a document that caches may keep, or that it is still the one that the client has (RFC 9110 13.1.2). */
export function sendCacheable(
  request: HttpRequest,
  response: HttpResponse,
  { body, immutable }: Answer,
): void {
  const bytes = Buffer.from(JSON.stringify(body));
  const etag = `"${hash("sha256", bytes, "base64url")}"`;
  const tags = request.headers["if-none-match"]?.split(",") ?? [];
  const isKnown = tags.some((tag) => [etag, `W/${etag}`, "*"].includes(tag.trim()));
  const headers = {
    etag,
    "cache-control": immutable ? FOREVER : ASK_AGAIN,
    ...(isKnown ? {} : { "content-type": "application/json", "content-length": String(bytes.length) }),
  };
  // The two forms of a response have the same methods, with overloads that do not agree.
  const answer = response as ServerResponse;
  answer.writeHead(isKnown ? 304 : 200, headers);
  answer.end(isKnown || request.method === "HEAD" ? undefined : bytes);
}
