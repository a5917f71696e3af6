import type { Http2Stream, ServerHttp2Stream } from "node:http2";
import type { HttpRequest } from "./http-routes.ts";

/** The prefix of an IPv4 address in IPv6 form. (RFC 4291 2.5.5.2) */
const MAPPED = "::ffff:";

/** Returns the network address of a connection's client, without a port; empty for a UNIX socket or a closed one. */
function addressOfSocket(socket: { readonly remoteAddress?: string | undefined } | undefined): string {
  const address = socket?.remoteAddress ?? "";
  return address.startsWith(MAPPED) && address.includes(".") ? address.slice(MAPPED.length) : address;
}

/** Returns the client's address for the connection of an HTTP/2 stream. */
export function addressOfStream(stream: Http2Stream | ServerHttp2Stream): string {
  return addressOfSocket(stream.session?.socket);
}

/** Returns the client's address for the connection of a request. */
export function addressOfRequest(request: HttpRequest): string {
  return "stream" in request ? addressOfStream(request.stream) : addressOfSocket(request.socket);
}
