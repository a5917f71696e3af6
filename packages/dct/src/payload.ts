import { canonicalJson, encodeBase64Url } from "@depute/core";
import type { CryptoEngine } from "./engine.ts";
import { utf8Of } from "./scratch.ts";
import type { Attenuation, Authority, SignedJSONToken } from "./types.ts";

/** The blocks of a token as the texts that are hashed and signed; each block is written once. */
export class BlockTexts {
  readonly #authority: string;
  readonly #attenuations: readonly string[];

  constructor(authority: Authority | string, attenuations: readonly (Attenuation | string)[]) {
    this.#authority = canonical(authority);
    this.#attenuations = attenuations.map(canonical);
  }

  /**
   * The 32 bytes that the signature of a block covers (DelegateOS 3.3 and 3.4): BLAKE2b-256 of the canonical
   * `{authority}` for level 0, of `{authority, attenuations}` up to and with attenuation `level - 1` above. Each
   * signature covers every block before it, so that no block can be moved to another chain.
   */
  signedDigest(engine: CryptoEngine, level: number): Uint8Array {
    if (level === 0) return hash(engine, `{"authority":${this.#authority}}`);
    const blocks = this.#attenuations.slice(0, level).join(",");
    return hash(engine, `{"attenuations":[${blocks}],"authority":${this.#authority}}`);
  }

  /** The revocation id of each block, the authority's first (DelegateOS 3.5). */
  revocationIds(engine: CryptoEngine): string[] {
    return [this.#authority, ...this.#attenuations].map((block) => encodeBase64Url(hash(engine, block)));
  }
}

/** The revocation id of one block (DelegateOS 3.5): 43 characters. Throws CanonicalError for what is not JSON. */
export function revocationId(engine: CryptoEngine, block: Authority | Attenuation): string {
  return encodeBase64Url(hash(engine, canonicalJson(block)));
}

/** The revocation ids of a token's blocks, the authority's first. */
export function revocationIds(
  engine: CryptoEngine,
  token: Pick<SignedJSONToken, "authority" | "attenuations">,
): string[] {
  return new BlockTexts(token.authority, token.attenuations).revocationIds(engine);
}

/** A block's canonical text; one that is a text already is taken as it is. */
function canonical(block: object | string): string {
  return typeof block === "string" ? block : canonicalJson(block);
}

/** BLAKE2b-256 of the UTF-8 of a text. */
export function hash(engine: CryptoEngine, text: string): Uint8Array {
  return engine.blake2b256(utf8Of(text));
}
