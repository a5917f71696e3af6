import type { JsonObject } from "@bufbuild/protobuf";
import { sha256Hex } from "@depute/core/sha256";
import { type CardSigner, type SignedCard, signCard } from "./rules/agent-card.ts";

/** Maximum number of signed cards in memory. */
const MAX_CARDS = 256;
/** Maximum length of a card in memory, in characters of its JSON. */
const MAX_CHARS = 16 * 1024;

/**
 * Signs cards, and keeps the signed form of those that it signed last. A signature depends on the card and the key
 * alone, and costs more than the rest of the call.
 */
export class SignedCards {
  readonly #signer: CardSigner;
  readonly #signed = new Map<string, SignedCard>();

  constructor(signer: CardSigner) {
    this.#signer = signer;
  }

  /** Returns a card with its signature. The caller must not change the result. */
  sign(card: JsonObject): SignedCard {
    const text = JSON.stringify(card);
    const known = this.#signed.get(text);
    if (known !== undefined) return known;
    const signed = signCard(card, this.#signer, sha256Hex);
    if (text.length > MAX_CHARS) return signed;
    if (this.#signed.size >= MAX_CARDS) {
      for (const oldest of this.#signed.keys()) {
        this.#signed.delete(oldest);
        break;
      }
    }
    this.#signed.set(text, signed);
    return signed;
  }
}
