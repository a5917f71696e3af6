import type { CryptoEngine } from "./engine.ts";
import { hash } from "./payload.ts";
import type { TokenSignature } from "./types.ts";

/** Most prefixes that are remembered unless told otherwise, at about 150 bytes each. */
export const MAX_VERIFIED_PREFIXES = 16_384;

/** Changed with the meaning of what is remembered, so that nothing older is ever taken for it. */
const VERSION = "delegateos-verified-prefix-v1";

/**
 * Beginnings of tokens - an authority and some of the attenuations that follow it - all of whose signatures were found
 * to hold. Only that: who is trusted, what is revoked, the narrowing, times, budget, the contract, the request and the
 * proof are looked at anew each time, and what did not hold is not remembered.
 *
 * A beginning is known by a 256-bit digest of the engine's name, every block's revocation id (the digest of all that
 * the block says) and every signature: nothing that a signature covers, nor the signature, is left out. When there is
 * no room the one that was not used for the longest time goes.
 */
export class VerifiedPrefixes {
  readonly #max: number;
  /** In the order of their last use. */
  readonly #keys = new Set<string>();

  constructor(max: number = MAX_VERIFIED_PREFIXES) {
    if (!Number.isSafeInteger(max) || max < 1) throw new RangeError("at least one prefix");
    this.#max = max;
  }

  /** How many beginnings are remembered. */
  get size(): number {
    return this.#keys.size;
  }

  /** How many of a token's first blocks carry signatures that are known to hold. */
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

  /** Remembers every beginning of a token all of whose signatures were just found to hold. */
  add(engine: CryptoEngine, ids: readonly string[], signatures: readonly TokenSignature[]): void {
    for (let blocks = 1; blocks <= ids.length; blocks++) this.#keep(keyOf(engine, ids, signatures, blocks));
  }

  /** Forgets all. */
  clear(): void {
    this.#keys.clear();
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

/** Ids have 43 characters and signatures 86, so that no two lists make one text. */
function keyOf(
  engine: CryptoEngine,
  ids: readonly string[],
  signatures: readonly TokenSignature[],
  blocks: number,
): string {
  let text = `${VERSION} ${engine.name} `;
  for (let i = 0; i < blocks; i++) text += `${ids[i]}${signatures[i]?.signature}`;
  const digest = hash(engine, text);
  // Sixteen UTF-16 units hold the 256 bits in the least space.
  let key = "";
  for (let i = 0; i < digest.length; i += 2) {
    key += String.fromCharCode(((digest[i] as number) << 8) | (digest[i + 1] as number));
  }
  return key;
}
