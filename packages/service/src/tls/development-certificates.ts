import "reflect-metadata";
import type { webcrypto } from "node:crypto";
import { isIP } from "node:net";
import { randomBytes } from "@depute/core";
import {
  AuthorityKeyIdentifierExtension,
  BasicConstraintsExtension,
  ExtendedKeyUsage,
  ExtendedKeyUsageExtension,
  type JsonGeneralName,
  KeyUsageFlags,
  KeyUsagesExtension,
  PemConverter,
  SubjectAlternativeNameExtension,
  SubjectKeyIdentifierExtension,
  type X509Certificate,
  X509CertificateGenerator,
} from "@peculiar/x509";

const ALGORITHM = { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" } as const;

/** A certificate and its key, in PEM. */
export interface Identity {
  readonly certificate: string;
  readonly key: string;
}

/** The names for which a certificate is issued. */
export interface IdentityNames {
  /** DNS names and IP addresses. The first one also becomes the common name. */
  readonly hosts?: readonly string[];
  /** URIs to name in the certificate, e.g. `spiffe://example.org/worker`. */
  readonly uris?: readonly string[];
}

/** A certificate authority for development and tests. Its key exists only in memory. */
export class DevelopmentAuthority {
  readonly #keys: webcrypto.CryptoKeyPair;
  readonly #certificate: X509Certificate;

  private constructor(keys: webcrypto.CryptoKeyPair, certificate: X509Certificate) {
    this.#keys = keys;
    this.#certificate = certificate;
  }

  /** Creates an authority. Its certificate is valid from `notBefore` to `notAfter`. */
  static async create(notBefore: Date, notAfter: Date): Promise<DevelopmentAuthority> {
    const keys = await createKeys();
    const certificate = await X509CertificateGenerator.createSelfSigned({
      serialNumber: serialNumber(),
      name: "CN=Depute development authority",
      notBefore,
      notAfter,
      signingAlgorithm: ALGORITHM,
      keys,
      extensions: [
        new BasicConstraintsExtension(true, 0, true),
        new KeyUsagesExtension(KeyUsageFlags.keyCertSign | KeyUsageFlags.cRLSign, true),
        await SubjectKeyIdentifierExtension.create(keys.publicKey),
      ],
    });
    return new DevelopmentAuthority(keys, certificate);
  }

  /** The authority's own certificate, in PEM. */
  get certificate(): string {
    return this.#certificate.toString("pem");
  }

  /**
   * Issues a certificate for servers and clients. The certificate has both usages, because each process of a platform
   * also uses the certificate of its listeners as a client.
   */
  async issue(
    { hosts = [], uris = [] }: IdentityNames,
    { notBefore, notAfter }: Pick<X509Certificate, "notBefore" | "notAfter"> = this.#certificate,
  ): Promise<Identity> {
    const keys = await createKeys();
    const names: JsonGeneralName[] = [
      ...hosts.map((value): JsonGeneralName => ({ type: isIP(value) === 0 ? "dns" : "ip", value })),
      ...uris.map((value): JsonGeneralName => ({ type: "url", value })),
    ];
    const [commonName] = hosts;
    const certificate = await X509CertificateGenerator.create({
      serialNumber: serialNumber(),
      subject: commonName === undefined ? "O=Depute development" : `CN=${commonName}`,
      issuer: this.#certificate.subject,
      notBefore,
      notAfter,
      signingAlgorithm: ALGORITHM,
      publicKey: keys.publicKey,
      signingKey: this.#keys.privateKey,
      extensions: [
        new BasicConstraintsExtension(false, undefined, true),
        new KeyUsagesExtension(KeyUsageFlags.digitalSignature, true),
        new ExtendedKeyUsageExtension([ExtendedKeyUsage.serverAuth, ExtendedKeyUsage.clientAuth]),
        ...(names.length > 0 ? [new SubjectAlternativeNameExtension(names)] : []),
        await AuthorityKeyIdentifierExtension.create(this.#certificate),
      ],
    });
    const key = await crypto.subtle.exportKey("pkcs8", keys.privateKey);
    return {
      certificate: certificate.toString("pem"),
      key: PemConverter.encode(key, "PRIVATE KEY"),
    };
  }
}

function createKeys(): Promise<webcrypto.CryptoKeyPair> {
  return crypto.subtle.generateKey(ALGORITHM, true, ["sign", "verify"]);
}

/**
 * Returns a random serial number of 16 bytes. The first bit is 0, so that the number is positive. The second bit is 1,
 * so that the first byte is not zero.
 */
function serialNumber(): string {
  const bytes = randomBytes(16);
  bytes[0] = ((bytes[0] ?? 0) & 0x7f) | 0x40;
  return Buffer.from(bytes).toString("hex");
}
