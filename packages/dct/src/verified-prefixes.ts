import type { CryptoEngine } from "./engine.ts";
import { hash } from "./payload.ts";
import type { TokenSignature } from "./types.ts";
import { MAX_VERIFIED_TOKENS, VerifiedTokens } from "./verified-tokens.ts";

/** Default maximum number of cached prefixes, at about 150 bytes each. */
export const MAX_VERIFIED_PREFIXES = 16_384;

/** A part of each cache key. Change this text when the meaning of an entry changes, so that no older entry matches. */
const VERSION = "delegateos-verified-prefix-v1";

/**
 * A cache of verified token prefixes: an authority and some of the following attenuations, all with valid
 * signatures. Besides signatures, only the values that depend on a token's text alone are cached; see `tokens`. Each
 * verification checks anew the trusted roots, revocations, attenuation, times, budget, contract, request and proof.
 * Failures are not cached.
 *
 * The key of a prefix is a 256-bit digest of the engine's name, every block's revocation id and every
 * signature. A revocation id is the digest of the whole block, so the key covers all signed content. The least
 * recently used entry is evicted first.
 */
export class VerifiedPrefixes {
  readonly #max: number;
  /** The cache keys, the least recently used first. */
  readonly #keys = new Set<string>();
  /** Recent whole tokens, which a repeated verification does not read again. */
  readonly tokens: VerifiedTokens;

  constructor(max: number = MAX_VERIFIED_PREFIXES) {
    if (!Number.isSafeInteger(max) || max < 1) throw new RangeError("at least one prefix");
    this.#max = max;
    this.tokens = new VerifiedTokens(Math.min(max, MAX_VERIFIED_TOKENS));
  }

  /** Returns the number of cached prefixes. */
  get size(): number {
    return this.#keys.size;
  }

  /** Returns the number of leading blocks whose signatures are cached as valid. */
  find(engine: CryptoEngine, ids: readonly string[], signatures: readonly TokenSignature[]): number {
    if (this.#keys.size === 0) return 0;
    for (let blocks = ids.length; blocks > 0; blocks--) {
      const key = keyOf(engine, ids, signatures, blocks);
      if (this.#keys.delete(key)) {
        this.#keys.add(key);
        return blocks;
      }
    }
    return 0;
  }

  /** Caches every prefix of a token whose signatures the verifier has found valid. */
  add(engine: CryptoEngine, ids: readonly string[], signatures: readonly TokenSignature[]): void {
    for (let blocks = 1; blocks <= ids.length; blocks++) this.#keep(keyOf(engine, ids, signatures, blocks));
  }

  /** Removes all prefixes and tokens. */
  clear(): void {
    this.#keys.clear();
    this.tokens.clear();
  }

  #keep(key: string): void {
    this.#keys.delete(key);
    this.#keys.add(key);
    if (this.#keys.size <= this.#max) return;
    for (const oldest of this.#keys) {
      this.#keys.delete(oldest);
      return;
    }
  }
}

/**
 * Returns the cache key of the first `blocks` blocks. Ids have 43 characters and signatures 86, so different lists
 * never give the same text.
 */
function keyOf(
  engine: CryptoEngine,
  ids: readonly string[],
  signatures: readonly TokenSignature[],
  blocks: number,
): string {
  let text = `${VERSION} ${engine.name} `;
  for (let i = 0; i < blocks; i++) text += `${ids[i]}${signatures[i]?.signature}`;
  const digest = hash(engine, text);
  // Sixteen UTF-16 units store the 256 bits in the least space.
  let key = "";
  for (let i = 0; i < digest.length; i += 2) {
    key += String.fromCharCode(((digest[i] as number) << 8) | (digest[i + 1] as number));
  }
  return key;
}
