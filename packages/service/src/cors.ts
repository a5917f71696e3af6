import { cors as connect } from "@connectrpc/connect";
import { CREDENTIAL_HEADERS } from "./door.ts";
import type { HttpRequest, HttpResponse } from "./http-routes.ts";
import { REQUEST_ID_HEADER } from "./request-id.ts";

/** Seconds for which a browser may cache the response to a preflight. */
const MAX_AGE_S = 600;

const METHODS = ["GET", "HEAD", "POST", "PUT", "DELETE"];

/** Request headers that a page may send, in addition to the headers that browsers always allow. */
const REQUEST_HEADERS = [
  ...connect.allowedHeaders,
  ...CREDENTIAL_HEADERS,
  REQUEST_ID_HEADER,
  "traceparent",
  "tracestate",
  "if-none-match",
  "if-modified-since",
  "idempotency-key",
  "last-event-id",
  "nekte-agent",
  "mcp-protocol-version",
  "mcp-session-id",
  "mcp-method",
  "mcp-name",
];

/** Response headers that a page may read, in addition to the headers that browsers always expose. */
const RESPONSE_HEADERS = [
  ...connect.exposedHeaders,
  REQUEST_ID_HEADER,
  "www-authenticate",
  "allow",
  "etag",
  "location",
  "content-location",
  "asp-session-id",
  "depute-offer-digest",
  "depute-offer-status",
  "mcp-session-id",
];

/**
 * Adds the CORS headers that let a page read the response. Returns true if the request was a preflight, which the
 * function has then answered.
 */
export type Cors = (request: HttpRequest, response: HttpResponse) => boolean;

/**
 * Lets pages of the listed origins read responses (Fetch standard, "CORS protocol"). The responses never allow
 * credentials of the browser, such as cookies. The server's Door (door.ts) runs before, and refuses pages of other
 * origins. Returns undefined for an empty list: without CORS headers, a browser lets no page of another origin read
 * responses.
 */
export function createCors(origins: readonly string[]): Cors | undefined {
  if (origins.length === 0) return undefined;
  return (request, response) => {
    const { origin, "access-control-request-method": method } = request.headers;
    // `vary` makes caches store the responses for different origins separately.
    response.setHeader("vary", "Origin");
    if (origin === undefined || !origins.includes(origin)) return false;
    response.setHeader("access-control-allow-origin", origin);
    if (request.method !== "OPTIONS" || method === undefined) {
      response.setHeader("access-control-expose-headers", RESPONSE_HEADERS.join(", "));
      return false;
    }
    response.setHeader("vary", "Origin, Access-Control-Request-Method, Access-Control-Request-Headers");
    response.setHeader("access-control-allow-methods", METHODS.join(", "));
    response.setHeader("access-control-allow-headers", REQUEST_HEADERS.join(", "));
    response.setHeader("access-control-max-age", String(MAX_AGE_S));
    response.statusCode = 204;
    response.end();
    return true;
  };
}
