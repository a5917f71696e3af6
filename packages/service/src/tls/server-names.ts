import { checkServerIdentity, type PeerCertificate } from "node:tls";

/**
 * Returns why a certificate is not the one of a host; undefined if it is. A certificate without alternative names is
 * refused: Node.js would compare its common name in their place. (RFC 9525 section 2)
 */
export function faultOfServerName(host: string, certificate: PeerCertificate): Error | undefined {
  return certificate.subjectaltname === undefined
    ? new Error(`the certificate of ${host} has no subject alternative name; issue one with this name`)
    : checkServerIdentity(host, certificate);
}
