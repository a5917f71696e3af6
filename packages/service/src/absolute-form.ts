import type { HttpRequest } from "./http-routes.ts";

const ABSOLUTE = /^https?:\/\/([^/?#]+)([^#]*)/i;

/**
 * Replaces an absolute address in the request line, as clients send it to a proxy, by its path. The host of the address
 * counts, and the header `host` does not. (RFC 9112 section 3.2.2)
 */
export function takeOriginForm(request: HttpRequest): void {
  const [, host, path = ""] = ABSOLUTE.exec(request.url ?? "") ?? [];
  if (host === undefined) return;
  request.url = path.startsWith("/") ? path : `/${path}`;
  request.headers.host = host;
}
