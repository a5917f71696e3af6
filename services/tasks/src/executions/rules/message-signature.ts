/** The signed components of the platform's requests. (RFC 9421 2.3) */
const COMPONENTS = ["@method", "@target-uri", "content-type", "content-digest"] as const;

export interface SignedRequest {
  readonly method: string;
  readonly url: string;
  readonly contentType: string;
  /** The header value `sha-256=:base64:`. (RFC 9530) */
  readonly contentDigest: string;
}

export interface SignatureParameters {
  /** The time of the signature, in epoch seconds. */
  readonly created: number;
  /** The thumbprint of the key (RFC 7638). */
  readonly keyId: string;
}

/** The parameters of a signature, as `Signature-Input` names them. (RFC 9421 2.3) */
export function signatureParams({ created, keyId }: SignatureParameters): string {
  const covered = COMPONENTS.map((name) => `"${name}"`).join(" ");
  return `(${covered});created=${created};keyid="${keyId}";alg="ed25519"`;
}

/** Returns the text that the key signs. (RFC 9421 2.5) */
export function signatureBase(request: SignedRequest, params: string): string {
  const values: Record<(typeof COMPONENTS)[number], string> = {
    "@method": request.method,
    "@target-uri": request.url,
    "content-type": request.contentType,
    "content-digest": request.contentDigest,
  };
  const lines = COMPONENTS.map((name) => `"${name}": ${values[name]}`);
  return [...lines, `"@signature-params": ${params}`].join("\n");
}
