import type { CryptoEngine } from "./engine.ts";
import { detached } from "./fast/memo.ts";
import type { ShapeRules } from "./structure.ts";
import type { SignedJSONToken } from "./types.ts";

/** Maximum number of cached tokens. */
export const MAX_VERIFIED_TOKENS = 1024;
/** Maximum number of characters of all cached tokens together. A token takes about six bytes a character. */
export const MAX_VERIFIED_TOKEN_CHARS = 1_048_576;

/** The values that depend on a token's text alone. */
export interface VerifiedToken {
  readonly token: SignedJSONToken;
  /** The revocation id of each block, beginning with the authority block. */
  readonly ids: readonly string[];
}

interface Entry extends VerifiedToken {
  readonly engineName: string;
  readonly idRule: ShapeRules["ids"];
}

/**
 * A cache of tokens by their exact text. It has only tokens whose signatures are all valid under the keys in their
 * blocks, so a forged token takes no room. A token is frozen, because all verifications share it. If the cache is full,
 * it evicts the least recently used token.
 */
export class VerifiedTokens {
  readonly #max: number;
  readonly #maxChars: number;
  /** The cached tokens by text, the least recently used first. */
  readonly #entries = new Map<string, Entry>();
  #chars = 0;

  constructor(max: number = MAX_VERIFIED_TOKENS, maxChars: number = MAX_VERIFIED_TOKEN_CHARS) {
    this.#max = max;
    this.#maxChars = maxChars;
  }

  /** Returns the number of cached tokens. */
  get size(): number {
    return this.#entries.size;
  }

  /** Returns the token that an engine and rules gave for this text; undefined for an unknown text. */
  find(engine: CryptoEngine, text: string, { ids }: ShapeRules): VerifiedToken | undefined {
    const entry = this.#entries.get(text);
    if (entry === undefined || entry.engineName !== engine.name || entry.idRule !== ids) return undefined;
    this.#entries.delete(text);
    this.#entries.set(text, entry);
    return entry;
  }

  /** Caches a token whose signatures the verifier has found valid, and freezes the token. */
  add(engine: CryptoEngine, text: string, rules: ShapeRules, { token, ids }: VerifiedToken): void {
    this.#remove(text);
    freeze(token);
    this.#entries.set(detached(text), { token, ids, engineName: engine.name, idRule: rules.ids });
    this.#chars += text.length;
    for (const oldest of this.#entries.keys()) {
      if (this.#entries.size <= this.#max && this.#chars <= this.#maxChars) return;
      this.#remove(oldest);
    }
  }

  clear(): void {
    this.#entries.clear();
    this.#chars = 0;
  }

  #remove(text: string): void {
    if (this.#entries.delete(text)) this.#chars -= text.length;
  }
}

/** Freezes a value of JSON with all its members. */
function freeze(value: object): void {
  Object.freeze(value);
  for (const member of Object.values(value)) {
    if (typeof member === "object" && member !== null) freeze(member);
  }
}
