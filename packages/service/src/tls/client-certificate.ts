import type { Http2Stream, ServerHttp2Stream } from "node:http2";
import type { Duplex } from "node:stream";
import type { TLSSocket } from "node:tls";
import type { HttpRequest } from "../http-routes.ts";

/** The form of a SPIFFE id with a path. (SPIFFE-ID section 2) */
const SPIFFE_ID = /^spiffe:\/\/[a-z0-9._-]{1,255}(?:\/[A-Za-z0-9._-]+)+$/;
/** Maximum number of characters of a SPIFFE id. (SPIFFE-ID section 2.3) */
const MAX_SPIFFE_ID = 2048;

/**
 * The member of a socket that stores the SPIFFE id of its client. A WeakMap by socket would not work, because an HTTP/2
 * session returns a proxy instead of the socket. The proxy passes on members of the socket.
 */
const CERTIFICATE: unique symbol = Symbol("client certificate");

interface WithCertificate {
  [CERTIFICATE]?: string;
}

/**
 * Stores the SPIFFE id of a connection's client certificate in its socket; empty for a certificate that is not trusted.
 * Call it after the handshake.
 */
export function rememberCertificate(socket: TLSSocket): void {
  const certificate = socket.getPeerX509Certificate();
  if (certificate === undefined) return;
  (socket as WithCertificate)[CERTIFICATE] = socket.authorized ? spiffeIdIn(certificate.subjectAltName) : "";
}

/**
 * Returns the SPIFFE id among the alternative names of a certificate. Empty if the certificate has no URI, several
 * URIs, or a URI of another form. (X509-SVID section 2)
 *
 * @param names as Node.js prints them, e.g. `DNS:host, URI:spiffe://example.org/worker`
 */
export function spiffeIdIn(names: string | undefined): string {
  // Node.js quotes only a name that contains a separator. Such a name could imitate a list of names, so the function
  // accepts no SPIFFE id from the certificate.
  if (names === undefined || names.includes('"')) return "";
  const uris = names.split(", ").filter((name) => name.startsWith("URI:"));
  const id = uris.length === 1 ? (uris[0] ?? "").slice("URI:".length) : "";
  return id.length <= MAX_SPIFFE_ID && SPIFFE_ID.test(id) ? id : "";
}

/**
 * Returns the SPIFFE id of a connection's client; empty if the certificate has no SPIFFE id or is not trusted,
 * undefined if the client has no certificate.
 */
export function certificateOfSocket(socket: Duplex | undefined): string | undefined {
  return (socket as WithCertificate | undefined)?.[CERTIFICATE];
}

/** Returns the SPIFFE id of the client of an HTTP/2 stream, as {@link certificateOfSocket} does. */
export function certificateOfStream(stream: Http2Stream | ServerHttp2Stream): string | undefined {
  return certificateOfSocket(stream.session?.socket);
}

/** Returns the SPIFFE id of the client of a request, as {@link certificateOfSocket} does. */
export function certificateOfRequest(request: HttpRequest): string | undefined {
  return "stream" in request ? certificateOfStream(request.stream) : certificateOfSocket(request.socket);
}
