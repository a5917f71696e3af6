import { canonicalJson, decodeBase64UrlInto, decodedBytes, encodeBase64Url } from "@depute/core";
import type { CryptoEngine } from "./engine.ts";
import type { Attenuation, Authority, SignedJSONToken } from "./types.ts";

/**
 * A buffer for bytes that are used once. All callers share the buffer, because an allocation per call costs more than
 * the work. The bytes are valid until the next call. So a caller must use the bytes before its next await, and must not
 * store them.
 */
const scratch = new Uint8Array(65_536);
const utf8 = new TextEncoder();

/** Returns the UTF-8 bytes of a text, in the shared buffer if it is large enough. */
export function utf8Of(text: string): Uint8Array {
  // A UTF-16 code unit has at most three bytes in UTF-8.
  if (text.length * 3 > scratch.length) return utf8.encode(text);
  return scratch.subarray(0, utf8.encodeInto(text, scratch).written);
}

/**
 * Decodes base64url like decodeBase64Url, but into the shared buffer; undefined for a text that decodeBase64Url
 * refuses. A text that is too long for the shared buffer gets a new buffer.
 */
export function bytesOf(text: string): Uint8Array | undefined {
  const length = decodedBytes(text);
  return decodeBase64UrlInto(length > scratch.length ? new Uint8Array(length) : scratch, text);
}

/**
 * The canonical texts of a token's blocks, from which hashes and signatures are computed. Each block is converted to
 * text only once.
 */
export class BlockTexts {
  readonly #authority: string;
  readonly #attenuations: readonly string[];

  constructor(authority: Authority | string, attenuations: readonly (Attenuation | string)[]) {
    this.#authority = canonical(authority);
    this.#attenuations = attenuations.map(canonical);
  }

  /**
   * Returns the 32 bytes that the signature of a block covers (DelegateOS 3.3 and 3.4): BLAKE2b-256 of canonical JSON.
   * For level 0 the JSON is `{authority}`. For a level n above 0 it is `{authority, attenuations}` with the first n
   * attenuations. Each signature covers every earlier block, so that no block can be moved to another chain.
   */
  signedDigest(engine: CryptoEngine, level: number): Uint8Array {
    if (level === 0) return hash(engine, `{"authority":${this.#authority}}`);
    const blocks = this.#attenuations.slice(0, level).join(",");
    return hash(engine, `{"attenuations":[${blocks}],"authority":${this.#authority}}`);
  }

  /** Returns the revocation id of each block, beginning with the authority block (DelegateOS 3.5). */
  revocationIds(engine: CryptoEngine): string[] {
    return [this.#authority, ...this.#attenuations].map((block) => encodeBase64Url(hash(engine, block)));
  }
}

/** A token that was read, and its blocks as texts for hashing. */
export interface ReadToken {
  readonly token: SignedJSONToken;
  readonly texts: BlockTexts;
  /** The bytes of each signature, if the reader has decoded them. */
  readonly signatures?: readonly Uint8Array[];
}

/**
 * Returns the revocation id of one block (DelegateOS 3.5): 43 characters. Throws CanonicalError for a value that is not
 * JSON.
 */
export function revocationId(engine: CryptoEngine, block: Authority | Attenuation): string {
  return encodeBase64Url(hash(engine, canonicalJson(block)));
}

/**
 * Returns the revocation ids of a token's blocks, beginning with the authority block. Throws CanonicalError for a
 * block that is not JSON.
 */
export function revocationIds(
  engine: CryptoEngine,
  token: Pick<SignedJSONToken, "authority" | "attenuations">,
): string[] {
  return new BlockTexts(token.authority, token.attenuations).revocationIds(engine);
}

/** Returns a block's canonical text; a text is returned unchanged. */
function canonical(block: object | string): string {
  return typeof block === "string" ? block : canonicalJson(block);
}

/** Returns BLAKE2b-256 of a text's UTF-8 bytes. */
export function hash(engine: CryptoEngine, text: string): Uint8Array {
  return engine.blake2b256(utf8Of(text));
}
