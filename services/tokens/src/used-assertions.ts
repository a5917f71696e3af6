import { DeputeError, ErrorReason, encodeBase64Url } from "@depute/core";
import type { CryptoEngine } from "@depute/dct";
import { type AssertionId, identityRefused } from "@depute/service";
import type { UsedProofs } from "./seen-proofs.ts";

interface UsedAssertionsOptions {
  engine: Pick<CryptoEngine, "sha256">;
  seenProofs: UsedProofs;
  /** Maximum number of proofs and assertions in memory. */
  max: number;
}

/**
 * The identity assertions that callers have exchanged. Their digests are in the table of used proofs, and count towards
 * the limit of used proofs.
 */
export class UsedAssertions {
  readonly #options: UsedAssertionsOptions;

  constructor(options: UsedAssertionsOptions) {
    this.#options = options;
  }

  /**
   * Durably marks an assertion as used. (RFC 7523 section 3, claim `jti`)
   *
   * @throws DeputeError UNAUTHENTICATED with the fault `replayed` if the assertion was used before
   * @throws DeputeError LIMIT_EXCEEDED if no room is left for the assertion, SHUTTING_DOWN
   */
  async use({ issuer, jti, expiresAt }: AssertionId): Promise<void> {
    const { seenProofs, max } = this.#options;
    const proof = { principal: this.#digest(issuer), jti: this.#digest(jti), forgetTime: expiresAt };
    const use = await seenProofs.useRecorded({ ...proof, kind: "token" });
    if (use === "seen") throw identityRefused("replayed");
    if (use === "full") {
      throw new DeputeError(
        ErrorReason.LIMIT_EXCEEDED,
        "the memory of used proofs is full; try again later",
        { metadata: { limit: "seen_proofs", max: String(max) } },
      );
    }
  }

  /**
   * Returns the digest of a text that an issuer chose. A digest has the fixed length of a principal, whatever the
   * text's length.
   */
  #digest(text: string): string {
    return encodeBase64Url(this.#options.engine.sha256(new TextEncoder().encode(text)));
  }
}
