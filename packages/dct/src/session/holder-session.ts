import { randomBytes } from "@depute/core";
import type { DenialReason } from "../denial.ts";
import type { CryptoEngine } from "../engine.ts";
import { CLOCK_SKEW_MS, PROOF_WINDOW_MS } from "../limits.ts";
import { type AcceptedProof, type ProofExpectation, thumbprint, tokenDigest } from "../proof.ts";
import { callCode, isSameCode, readCallProof } from "./call-proof.ts";
import { ReplayWindow } from "./replay-window.ts";
import type { SessionTerms } from "./terms.ts";

/**
 * The verifier's side of a holder session. The holder proved possession of its key once, and a keyed code
 * authenticates each further call. A session is bound to one principal, one token, one audience and one expiry. The
 * session grants no capability, because each call verifies the token again. A holder whose session is lost proves
 * possession again.
 */
export class HolderSession {
  readonly terms: SessionTerms;
  readonly #key: Uint8Array;
  readonly #thumbprint: string;
  readonly #window = new ReplayWindow();

  /**
   * Creates a holder session for openSession, or for a verifier that stored the terms and the key of an open one.
   *
   * @param key the session's key; the session uses this array itself, and `close` overwrites it
   */
  constructor(engine: CryptoEngine, terms: SessionTerms, key: Uint8Array) {
    this.terms = terms;
    this.#key = key;
    this.#thumbprint = thumbprint(engine, terms.principal);
  }

  /**
   * Checks the proof of one call. Like checkProof for a standalone proof, the method never throws and changes no
   * state. If the proof is accepted, the caller must pass the call's number to `use`. A missing proof is denied as
   * proof_required. A number that was used or is too old is denied as replayed_proof. Any other fault of the proof
   * is denied as invalid_proof with the fault, and a faulty expectation as internal_context.
   */
  check(
    engine: CryptoEngine,
    proof: unknown,
    expected: ProofExpectation,
  ): { ok: true; proof: AcceptedProof } | { ok: false; denial: DenialReason } {
    if (proof === undefined || proof === null || proof === "") return denied("proof_required");
    const { now, windowMs = PROOF_WINDOW_MS, skewMs = CLOCK_SKEW_MS } = expected;
    if (typeof expected.htm !== "string" || typeof expected.htu !== "string")
      return denied("internal_context");
    if (![now, windowMs, skewMs].every((ms) => Number.isFinite(ms) && ms >= 0))
      return denied("internal_context");
    const read = readCallProof(proof);
    if (read === undefined) return denied("invalid_proof", "form");
    const wrong = this.#wrongBinding(engine, read.id, expected);
    if (wrong !== undefined) return denied("invalid_proof", wrong);
    const age = now - read.time;
    if (age > windowMs || age < -skewMs) return denied("invalid_proof", "time");
    if (now > this.terms.expiresAt) return denied("invalid_proof", "session expired");
    const { id, counter, time } = read;
    const { htm, htu, ard } = expected;
    const code = callCode(engine, this.#key, { id, counter, time, htm, htu, ard });
    if (!isSameCode(code, read.code)) return denied("invalid_proof", "code");
    // The number is checked after the code, so that only the key's owner can learn which numbers were used.
    if (!this.#window.isFresh(counter)) return denied("replayed_proof");
    return {
      ok: true,
      proof: {
        jti: `${id}.${counter}`,
        principal: this.terms.principal,
        thumbprint: this.#thumbprint,
        issuedAt: time,
        expiresAt: Math.min(time + windowMs, this.terms.expiresAt),
        counter,
      },
    };
  }

  /**
   * Consumes the number of an accepted call. Returns false if the number was used or is too old. Call this method
   * before the call is carried out.
   */
  use(counter: number): boolean {
    return this.#window.use(counter);
  }

  /**
   * Returns a copy of the key, so that a verifier with several processes can store it sealed. Such a verifier records
   * the numbers of calls itself, because `use` counts the calls of one process only.
   */
  copyKey(): Uint8Array {
    return this.#key.slice();
  }

  /** Overwrites the key, so that no further call is accepted. */
  close(): void {
    // A random key replaces the old key, so that no further proof verifies.
    this.#key.set(randomBytes(this.#key.length));
  }

  #wrongBinding(engine: CryptoEngine, id: string, expected: ProofExpectation): string | undefined {
    const { terms } = this;
    if (id !== terms.id) return "session";
    if (expected.principal !== undefined && expected.principal !== terms.principal) return "principal";
    if (!isWithin(expected.htu, terms.audience)) return "audience";
    const ath = expected.token === undefined ? undefined : tokenDigest(engine, expected.token);
    return ath === terms.ath ? undefined : "ath";
  }
}

/** Whether an address is the audience or below it. */
export function isWithin(htu: string, audience: string): boolean {
  return htu === audience || htu.startsWith(audience.endsWith("/") ? audience : `${audience}/`);
}

function denied(type: DenialReason["type"], detail?: string): { ok: false; denial: DenialReason } {
  return { ok: false, denial: detail === undefined ? { type } : { type, detail } };
}
