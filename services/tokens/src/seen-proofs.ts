import type { Clock } from "@depute/core";
import { type AcceptedProof, CLOCK_SKEW_MS } from "@depute/dct";
import type { Store, WriteTx } from "@depute/store";
import {
  countProofs,
  forgetProofs,
  insertProof,
  type ProofCounts,
  type ProofKind,
} from "./store/proof-rows.ts";

/** Expired proofs forgotten with each new one, and when there is no room. */
const FORGOTTEN_AT_ONCE = 4;
const FORGOTTEN_WHEN_FULL = 1000;

/**
 * The proofs that were used, by principal and `jti`, so that none is used twice (RFC 9449 section 11.1).
 *
 * One is kept as long as it could be presented: to the end of its window, which begins at its `iat`, up to 30 seconds
 * ahead of the clock, and as much longer, in case the clock is set back. It is durable before its call is decided, so
 * that a restart forgets none. When there is no room a proof is denied: to forget one would let it be used again.
 *
 * Anybody can make keys and proofs that state no more than who calls; they get half of the room, so that they cannot
 * shut out the holders of tokens.
 */
export class SeenProofs {
  readonly #store: Store;
  readonly #clock: Clock;
  readonly #max: number;
  /** Undefined until read, and again after a failure, which may have undone what was counted. */
  #counts: ProofCounts | undefined;

  constructor({ store, clock, max }: { store: Store; clock: Clock; max: number }) {
    this.#store = store;
    this.#clock = clock;
    this.#max = max;
  }

  /** Uses a proof up. `seen`: it was used before; `full`: there is no room to remember it. */
  async use(proof: AcceptedProof, kind: ProofKind): Promise<"fresh" | "seen" | "full"> {
    try {
      return await this.#store.write((tx) => this.#use(tx, proof, kind));
    } catch (error) {
      this.#counts = undefined;
      throw error;
    }
  }

  async #use(tx: WriteTx, { principal, jti, expiresAt }: AcceptedProof, kind: ProofKind) {
    const counts = this.#counts ?? (await countProofs(tx));
    this.#counts = counts;
    const limit = this.#isFull(counts, kind) ? FORGOTTEN_WHEN_FULL : FORGOTTEN_AT_ONCE;
    const forgotten = await forgetProofs(tx, this.#clock.now(), limit);
    counts.token -= forgotten.token;
    counts.identity -= forgotten.identity;
    if (this.#isFull(counts, kind)) return "full";
    const isFresh = await insertProof(tx, { principal, jti, kind, forgetTime: expiresAt + CLOCK_SKEW_MS });
    if (!isFresh) return "seen";
    counts[kind]++;
    return "fresh";
  }

  #isFull({ token, identity }: ProofCounts, kind: ProofKind): boolean {
    return token + identity >= this.#max || (kind === "identity" && identity >= Math.ceil(this.#max / 2));
  }
}
