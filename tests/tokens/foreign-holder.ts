import { createHash, generateKeyPairSync, type KeyObject, sign } from "node:crypto";

/** A holder of tokens, written without code of the platform: proofs as RFC 9449 describes them. */
export class ForeignHolder {
  readonly #key: KeyObject;
  /** The public key in base64url. */
  readonly principal: string;

  constructor() {
    const { publicKey, privateKey } = generateKeyPairSync("ed25519");
    this.#key = privateKey;
    this.principal = String(publicKey.export({ format: "jwk" }).x);
  }

  /** Proves possession of the key for one call. Each proof has a new `jti`. */
  prove(method: string, target: string, token?: string): string {
    const header = { typ: "dpop+jwt", alg: "EdDSA", jwk: { kty: "OKP", crv: "Ed25519", x: this.principal } };
    const claims = {
      ...{ htm: method, htu: target, iat: Math.floor(Date.now() / 1000), jti: crypto.randomUUID() },
      ...(token !== undefined && { ath: createHash("sha256").update(token).digest("base64url") }),
    };
    const signed = `${encode(header)}.${encode(claims)}`;
    return `${signed}.${sign(null, Buffer.from(signed), this.#key).toString("base64url")}`;
  }
}

function encode(value: unknown): string {
  return Buffer.from(JSON.stringify(value)).toString("base64url");
}
