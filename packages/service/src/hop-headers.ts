/**
 * Headers that Depute's own processes add to calls between them. A process trusts these headers only from
 * another Depute process.
 */
export const HOP = {
  /** The HTTP method that the client used. */
  htm: "depute-htm",
  /** The URL that the client called. */
  htu: "depute-htu",
  /** The secret that the platform's processes share. */
  internal: "depute-internal",
  /**
   * The origin of a call. The only value is `service`, for a call that a service makes on its own behalf. This header
   * is never copied from a caller's request.
   */
  origin: "depute-origin",
  /**
   * The organization that owns the records of a service's own call, percent-encoded. This header is never copied from a
   * caller's request.
   */
  organization: "depute-organization",
  /**
   * The SPIFFE id of the client's certificate; `none` if the certificate has no SPIFFE id, absent if the client has no
   * certificate.
   */
  certificate: "depute-client-certificate",
  /** The network address of the client, percent-encoded. */
  address: "depute-client-address",
  /** The protocol of the client's request, percent-encoded. */
  wire: "depute-wire",
  /** The principal on whose behalf a service makes its own call, percent-encoded. */
  onBehalfOf: "depute-on-behalf-of",
} as const;

/** The value of {@link HOP.certificate} for a certificate without a SPIFFE id. */
export const NO_SPIFFE_ID = "none";

/** Sets the header {@link HOP.certificate}. Does nothing if `spiffeId` is undefined. */
export function forwardCertificate(headers: Headers, spiffeId: string | undefined): void {
  if (spiffeId !== undefined) headers.set(HOP.certificate, spiffeId || NO_SPIFFE_ID);
}
