import { generateKeyPairSync, sign } from "node:crypto";

/** The certificate and key of a TLS server, as PEM. */
export interface Certified {
  readonly key: string;
  readonly cert: string;
}

/**
 * Creates a self-signed certificate for an IP address (RFC 5280). It is valid from 12 hours ago until 12 hours from
 * now.
 */
export function selfSigned(name: string, address = [127, 0, 0, 1]): Certified {
  const { privateKey, publicKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const algorithm = sequence(oid(0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x02)); // ecdsa-with-SHA256
  const commonName = sequence(oid(0x55, 0x04, 0x03), der(0x0c, Buffer.from(name)));
  const subject = sequence(der(0x31, commonName));
  const names = sequence(der(0x87, Buffer.from(address)));
  const day = 86_400_000;
  const body = sequence(
    der(0xa0, integer(2)),
    integer(1),
    algorithm,
    subject,
    sequence(time(Date.now() - day / 2), time(Date.now() + day / 2)),
    subject,
    publicKey.export({ type: "spki", format: "der" }),
    der(0xa3, sequence(sequence(oid(0x55, 0x1d, 0x11), der(0x04, names)))), // subjectAltName
  );
  const signature = der(0x03, Buffer.of(0), sign("sha256", body, privateKey));
  const lines = sequence(body, algorithm, signature).toString("base64").replace(/.{64}/g, "$&\n");
  return {
    key: privateKey.export({ type: "pkcs8", format: "pem" }).toString(),
    cert: `-----BEGIN CERTIFICATE-----\n${lines}\n-----END CERTIFICATE-----\n`,
  };
}

/** Encodes a DER value with its tag and length. */
function der(tag: number, ...parts: Uint8Array[]): Buffer {
  const content = Buffer.concat(parts);
  const { length } = content;
  const head =
    length < 0x80 ? [length] : length < 0x100 ? [0x81, length] : [0x82, length >> 8, length & 0xff];
  return Buffer.concat([Buffer.of(tag, ...head), content]);
}

const sequence = (...parts: Uint8Array[]) => der(0x30, ...parts);
const oid = (...bytes: number[]) => der(0x06, Buffer.from(bytes));
const integer = (n: number) => der(0x02, Buffer.of(n));
const time = (ms: number) =>
  der(0x17, Buffer.from(new Date(ms).toISOString().replace(/^\d\d|[-:T]|\.\d+/g, "")));
