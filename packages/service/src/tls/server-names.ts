import { checkServerIdentity, type PeerCertificate } from "node:tls";

/**
 * Returns an error if a certificate does not belong to a host; otherwise undefined. A certificate without alternative
 * names is refused, because Node.js would compare its common name instead. (RFC 9525 section 2)
 */
export function faultOfServerName(host: string, certificate: PeerCertificate): Error | undefined {
  return certificate.subjectaltname === undefined
    ? new Error(`the certificate of ${host} has no subject alternative name; issue one with this name`)
    : checkServerIdentity(host, certificate);
}
