import { type Clock, pause, randomUuid, type Timers } from "@depute/core";
import type { Logger } from "@depute/service";
import type { Store } from "@depute/store";
import { deleteClaim, extendClaim, insertClaim, type JudgeClaim } from "../store/judge-claims.ts";
import { findJudgeResult, type JudgeResultKey } from "../store/judge-results.ts";
import type { JudgeOutcome } from "./judge.ts";

/**
 * Milliseconds for which a claim is in force after its last extension. After that, another process may claim the judge
 * run.
 */
export const CLAIM_MS = 3_000;
/** Milliseconds between two extensions of a claim by its process. */
const EXTEND_MS = 1_000;
/** Milliseconds between two checks whether another process has finished a judge run. */
const LOOK_MS = 200;

interface JudgeClaimsOptions {
  readonly store: Store;
  readonly clock: Clock;
  readonly timers: Timers;
  readonly log: Logger;
}

/**
 * Ensures that only one replica at a time sends the questions about an output. A claim is a row that expires unless its
 * process extends it. If a process is suspended until its claim has expired, another process may send the questions a
 * second time. Only the first result that is stored counts.
 */
export class JudgeClaims {
  readonly #options: JudgeClaimsOptions;

  constructor(options: JudgeClaimsOptions) {
    this.#options = options;
  }

  /**
   * Runs a judge, or waits for the result of another replica.
   *
   * @param signal aborts when the caller ends the call; the wait then ends without a result
   * @param run sends the questions, and stores the result
   */
  async once(
    key: JudgeResultKey,
    signal: AbortSignal,
    run: () => Promise<JudgeOutcome>,
  ): Promise<JudgeOutcome> {
    const { timers } = this.#options;
    const claim = { key, holder: randomUuid() };
    for (;;) {
      const taken = await this.#take(claim);
      if (typeof taken === "object") return taken;
      if (taken) return this.#runClaimed(claim, run);
      if (signal.aborted) return { result: undefined, problem: "the call ended", cost: 0 };
      await pause(LOOK_MS, timers, signal);
    }
  }

  /**
   * Returns the stored outcome of a judge run. If no outcome is stored, claims the run: returns true if the claim
   * succeeded, and false if another claim is in force.
   */
  #take(claim: JudgeClaim): Promise<JudgeOutcome | boolean> {
    const { store, clock } = this.#options;
    return store.write(async (tx) => {
      const stored = await findJudgeResult(tx, claim.key);
      if (stored !== undefined) return { ...stored, problem: "" };
      const now = clock.now();
      return insertClaim(tx, claim, { now, expireMs: now + CLAIM_MS });
    });
  }

  async #runClaimed(claim: JudgeClaim, run: () => Promise<JudgeOutcome>): Promise<JudgeOutcome> {
    const { store, log } = this.#options;
    const stop = this.#extendWhileRunning(claim);
    try {
      const outcome = await run();
      // Another replica may have taken over the judge run, and stored a result first. The stored result counts.
      const stored = await store.read((tx) => findJudgeResult(tx, claim.key));
      return stored === undefined ? outcome : { ...stored, problem: "" };
    } finally {
      stop();
      await store
        .write((tx) => deleteClaim(tx, claim))
        .catch((err: unknown) =>
          log.warn({ err }, "the claim on a judge run cannot be deleted; it ends at its expiry"),
        );
    }
  }

  /** Extends a claim every EXTEND_MS. Returns a function that ends the extensions. */
  #extendWhileRunning(claim: JudgeClaim): () => void {
    const { store, clock, timers, log } = this.#options;
    let cancel = () => {};
    let hasEnded = false;
    const schedule = () => {
      if (!hasEnded) cancel = timers.after(EXTEND_MS, () => void extend());
    };
    const extend = async () => {
      try {
        const expireMs = clock.now() + CLAIM_MS;
        if (await store.write((tx) => extendClaim(tx, claim, expireMs))) return schedule();
        log.warn({ contract: claim.key.contractId }, "another replica has taken over a judge run");
      } catch (err) {
        log.warn({ err }, "the claim on a judge run cannot be extended; trying again");
        schedule();
      }
    };
    schedule();
    return () => {
      hasEnded = true;
      cancel();
    };
  }
}
