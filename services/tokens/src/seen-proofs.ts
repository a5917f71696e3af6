import { type Clock, DeputeError, ErrorReason, type Timers } from "@depute/core";
import { type AcceptedProof, CLOCK_SKEW_MS } from "@depute/dct";
import type { Logger } from "@depute/service";
import type { Store } from "@depute/store";
import { ProofMemory } from "./proof-memory.ts";
import {
  forgetProofs,
  insertProofs,
  type ProofKind,
  readHorizon,
  readProofs,
  type SeenProof,
  writeHorizon,
} from "./store/proof-rows.ts";

/** Milliseconds that the horizon is put ahead of the clock. */
export const HORIZON_LEAD_MS = 2000;
/** Proofs state whole seconds: one made just after a time may state as much less. */
const SECOND_MS = 1000;
/** Rows that are read, written and removed in one transaction. */
const BATCH = 2048;

/** What became of a proof. `unsure`: it may have been used before a crash. */
export type Use = "fresh" | "seen" | "unsure" | "full";

interface SeenProofsOptions {
  store: Store;
  clock: Clock;
  timers: Timers;
  log: Logger;
  /** Proofs remembered at most. */
  max: number;
}

/**
 * The proofs that were used, by principal and `jti`, so that none is used twice (RFC 9449 section 11.1), however the
 * process ends.
 *
 * They are remembered in memory, each as long as it could be presented: to the end of its window, which begins at its
 * `iat`, up to 30 seconds ahead of the clock, and as much longer, in case the clock is set back. What is durable is a
 * *horizon*: a proof counts only once the store says that proofs made up to then may have been used. It is put ahead of
 * the clock, about once in a second while there are calls, so that a proof hardly ever waits for the disk. One from
 * further ahead is written by itself.
 *
 * A clean stop writes all that are remembered. After any other end, proofs made up to the horizon are refused, whether
 * they were used or not, and what lies beyond it was written: nothing is used twice. The horizon is then two seconds
 * ahead at most, and the service starts when it has passed, so that no proof of a right clock is refused.
 *
 * A store belongs to one process, so this memory is the only one.
 */
export class SeenProofs {
  readonly #options: SeenProofsOptions;
  readonly #memory: ProofMemory;
  /** Durable. */
  #horizon = 0;
  /** Proofs made up to then are refused: an earlier process may have used them. */
  #unsureUntil = 0;
  #raising: Promise<void> | undefined;
  readonly #recording = new Set<Promise<void>>();
  #closed = false;

  constructor(options: SeenProofsOptions) {
    this.#options = options;
    this.#memory = new ProofMemory(options.max);
  }

  /** Reads what is known from before; to be called before the first use. */
  async start(): Promise<void> {
    const { store, clock, timers, log } = this.#options;
    let after = { principal: "", jti: "" };
    for (let proofs: SeenProof[]; ; after = proofs.at(-1) ?? after) {
      proofs = await store.read((tx) => readProofs(tx, clock.now(), after, BATCH));
      for (const proof of proofs) this.#memory.add(proof);
      if (proofs.length < BATCH) break;
    }
    this.#horizon = await store.read(readHorizon);
    this.#unsureUntil = this.#horizon;
    const rest = this.#unsureUntil + SECOND_MS - clock.now();
    if (rest <= 0) return;
    log.warn(
      { until: this.#unsureUntil },
      "proofs made before the last stop are refused: it was not a clean one",
    );
    // Further ahead it can only be where the clock was set back.
    const waitMs = Math.min(rest, HORIZON_LEAD_MS + SECOND_MS);
    await new Promise<void>((resolve) => void timers.after(waitMs, resolve));
  }

  /**
   * Uses a proof up. `full`: there is no room to remember it.
   *
   * @throws DeputeError SHUTTING_DOWN
   */
  async use(proof: AcceptedProof, kind: ProofKind): Promise<Use> {
    this.#assertOpen();
    const { clock } = this.#options;
    const { principal, jti, issuedAt, expiresAt } = proof;
    const seen = { principal, jti, kind, forgetTime: expiresAt + CLOCK_SKEW_MS };
    const now = clock.now();
    this.#memory.forget(now);
    if (issuedAt <= this.#unsureUntil) return "unsure";
    if (this.#memory.has(seen)) return "seen";
    if (this.#memory.isFull(kind)) return "full";
    if (issuedAt > now + HORIZON_LEAD_MS) await this.#record(seen);
    else if (issuedAt > this.#horizon) await this.#raiseTo(issuedAt);
    else if (now > this.#horizon - HORIZON_LEAD_MS / 2) this.#raise(issuedAt).catch(ignore);
    // Nothing is awaited from here on, so that of two alike one is fresh. What is remembered after the last is written
    // would be forgotten.
    this.#assertOpen();
    if (this.#memory.isFull(kind)) return "full";
    return this.#memory.add(seen) ? "fresh" : "seen";
  }

  /** Writes all that is remembered, so that the next start knows it and refuses nothing else. Never rejects. */
  async close(): Promise<void> {
    const { clock, log } = this.#options;
    this.#closed = true;
    await Promise.allSettled([this.#raising, ...this.#recording]);
    this.#memory.forget(clock.now());
    try {
      await this.#writeAll();
    } catch (err) {
      log.error({ err }, "used proofs cannot be written; those made up to now will be refused");
    }
  }

  #assertOpen(): void {
    if (this.#closed) throw new DeputeError(ErrorReason.SHUTTING_DOWN, "the service is stopping");
  }

  async #writeAll(): Promise<void> {
    const { store } = this.#options;
    let batch: SeenProof[] = [];
    const write = async (isLast: boolean) => {
      const proofs = batch;
      batch = [];
      await store.write(async (tx) => {
        await insertProofs(tx, proofs);
        if (isLast) await writeHorizon(tx, this.#unsureUntil);
      });
    };
    for (const proof of this.#memory.entries()) {
      batch.push(proof);
      if (batch.length === BATCH) await write(false);
    }
    await write(true);
  }

  async #raiseTo(issuedAt: number): Promise<void> {
    // What is on its way may have begun too early to reach so far; the next one does.
    while (this.#horizon < issuedAt) await this.#raise(issuedAt);
  }

  #raise(issuedAt: number): Promise<void> {
    const { store, clock } = this.#options;
    this.#raising ??= (async () => {
      const now = clock.now();
      const horizon = Math.max(this.#horizon, issuedAt, now + HORIZON_LEAD_MS);
      await store.write(async (tx) => {
        await forgetProofs(tx, now, BATCH);
        await writeHorizon(tx, horizon);
      });
      this.#horizon = horizon;
    })().finally(() => {
      this.#raising = undefined;
    });
    return this.#raising;
  }

  async #record(proof: SeenProof): Promise<void> {
    const written = this.#options.store.write((tx) => insertProofs(tx, [proof]));
    this.#recording.add(written);
    await written.finally(() => this.#recording.delete(written));
  }
}

/** The next proof that needs it asks again, and is told. */
function ignore(): void {}
