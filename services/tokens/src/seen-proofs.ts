import { setImmediate as nextTurn } from "node:timers/promises";
import type { Clock } from "@depute/core";
import { type AcceptedProof, CLOCK_SKEW_MS } from "@depute/dct";
import type { Store, WriteTx } from "@depute/store";
import {
  countProofs,
  forgetProofs,
  insertProofs,
  type ProofCounts,
  type ProofKind,
  type SeenProof,
} from "./store/proof-rows.ts";

/** Expired proofs are forgotten with every so many new ones, and more of them than came; and when there is no room. */
const FORGET_EVERY = 16;
const FORGOTTEN_AT_ONCE = 64;
const FORGOTTEN_WHEN_FULL = 1000;

/** Turns of the event loop that a proof waits for others to be written with it. */
const GATHER_TURNS = 2;
/** Proofs that are written together at most. */
const BATCH = 256;

/** What became of a proof. */
export type Use = "fresh" | "seen" | "full";

interface Waiting {
  readonly proof: AcceptedProof;
  readonly kind: ProofKind;
  readonly resolve: (use: Use) => void;
  readonly reject: (error: unknown) => void;
}

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
  #used = 0;
  readonly #waiting: Waiting[] = [];
  #isRunning = false;

  constructor({ store, clock, max }: { store: Store; clock: Clock; max: number }) {
    this.#store = store;
    this.#clock = clock;
    this.#max = max;
  }

  /** Uses a proof up. `seen`: it was used before; `full`: there is no room to remember it. */
  use(proof: AcceptedProof, kind: ProofKind): Promise<Use> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ proof, kind, resolve, reject });
      if (!this.#isRunning) void this.#run();
    });
  }

  /** Those that come while others are being written are written together next. Never rejects. */
  async #run(): Promise<void> {
    this.#isRunning = true;
    while (this.#waiting.length > 0) {
      // One flush to disk serves all that are there; a turn or two of the event loop is nothing beside it.
      for (let turn = 0; turn < GATHER_TURNS; turn++) await nextTurn();
      const batch = this.#waiting.splice(0, BATCH);
      try {
        const uses = await this.#store.write((tx) => this.#use(tx, batch));
        for (const [i, { resolve }] of batch.entries()) resolve(uses[i] ?? "full");
      } catch (error) {
        this.#counts = undefined;
        for (const { reject } of batch) reject(error);
      }
    }
    // In the same turn in which nothing was found to wait: who comes later begins anew.
    this.#isRunning = false;
  }

  async #use(tx: WriteTx, batch: readonly Waiting[]): Promise<Use[]> {
    const counts = this.#counts ?? (await countProofs(tx));
    this.#counts = counts;
    this.#used += batch.length;
    if (this.#used >= FORGET_EVERY) {
      this.#used = 0;
      await this.#forget(tx, counts, FORGOTTEN_AT_ONCE);
    }
    const uses: Use[] = batch.map(() => "full");
    const taken: number[] = [];
    let hasForgotten = false;
    // Room is counted as if all were new: of two alike, one takes it and gives it back.
    for (const [i, { kind }] of batch.entries()) {
      if (this.#isFull(counts, kind) && !hasForgotten) {
        hasForgotten = true;
        await this.#forget(tx, counts, FORGOTTEN_WHEN_FULL);
      }
      if (this.#isFull(counts, kind)) continue;
      counts[kind]++;
      taken.push(i);
    }
    const asked = taken.map((i) => batch[i] as Waiting);
    const fresh = await insertProofs(tx, asked.map(toSeenProof));
    for (const [n, i] of taken.entries()) {
      uses[i] = fresh[n] === true ? "fresh" : "seen";
      if (fresh[n] !== true) counts[(asked[n] as Waiting).kind]--;
    }
    return uses;
  }

  async #forget(tx: WriteTx, counts: ProofCounts, limit: number): Promise<void> {
    const forgotten = await forgetProofs(tx, this.#clock.now(), limit);
    counts.token -= forgotten.token;
    counts.identity -= forgotten.identity;
  }

  #isFull({ token, identity }: ProofCounts, kind: ProofKind): boolean {
    return token + identity >= this.#max || (kind === "identity" && identity >= Math.ceil(this.#max / 2));
  }
}

function toSeenProof({ proof: { principal, jti, expiresAt }, kind }: Waiting): SeenProof {
  return { principal, jti, kind, forgetTime: expiresAt + CLOCK_SKEW_MS };
}
