import { generateKeyPairSync, type KeyObject, sign } from "node:crypto";

/** A key that registers agents. */
export interface Signer {
  readonly principal: string;
  readonly key: KeyObject;
}

export function signer(): Signer {
  const { publicKey, privateKey } = generateKeyPairSync("ed25519");
  return { principal: publicKey.export({ format: "jwk" }).x ?? "", key: privateKey };
}

/** Signs a registration statement as a client does. */
export function signStatement(
  { key }: Signer,
  claims: Record<string, unknown>,
  header: Record<string, unknown> = {},
): string {
  const part = (value: unknown) => Buffer.from(JSON.stringify(value)).toString("base64url");
  const message = `${part({ alg: "EdDSA", typ: "depute-registration+jwt", ...header })}.${part(claims)}`;
  return `${message}.${sign(null, Buffer.from(message), key).toString("base64url")}`;
}
