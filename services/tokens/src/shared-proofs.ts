import { type Clock, DeputeError, ErrorReason, type Timers } from "@depute/core";
import { type AcceptedProof, CLOCK_SKEW_MS } from "@depute/dct";
import type { Logger } from "@depute/service";
import type { Store, WriteTx } from "@depute/store";
import type { CurrentRevocations } from "./revocation-reader.ts";
import { padded } from "./rules/padded.ts";
import { ProofMemory, type RecordedUse, type Use, type UsedProofs, untilPast } from "./seen-proofs.ts";
import { openSessionIds } from "./store/holder-session-rows.ts";
import {
  forgetProofs,
  insertNewProofs,
  type ProofKind,
  readHorizon,
  type SeenProof,
} from "./store/proof-rows.ts";

/**
 * Maximum number of proofs that one transaction inserts (BATCH), and of expired proofs that it deletes
 * (FORGOTTEN_AT_ONCE).
 */
const BATCH = 256;
const FORGOTTEN_AT_ONCE = 2048;
/** Milliseconds between two deletions of expired proofs. */
const FORGET_EVERY_MS = 1000;

interface SharedProofsOptions {
  readonly store: Store;
  readonly clock: Clock;
  readonly timers: Timers;
  readonly log: Logger;
  /**
   * Checks, in the transaction that marks proofs as used, whether this replica has read all revocations. Reads missing
   * ones after the transaction.
   */
  readonly revocations: CurrentRevocations;
  /** Maximum number of proofs in this replica's memory. */
  readonly max: number;
}

/** A proof whose mark as used is not durable yet. */
interface Waiting {
  readonly proof: SeenProof;
  /** The id of the proof's holder session; undefined for a proof outside a session. */
  readonly session: string | undefined;
  readonly resolve: (use: "fresh" | "seen" | "closed") => void;
  readonly reject: (error: unknown) => void;
}

/**
 * The used proofs of replicas that share a store. Each proof is a row, unique by principal and `jti`. A replica accepts
 * a proof only after its row is durable, so no replica accepts it a second time, even after a crash. The proofs of one
 * turn of the event loop share one transaction. The proofs that arrive during a write share the next transaction. Each
 * replica also keeps its proofs in memory. The memory bounds their number, and refuses a repeated proof without a
 * transaction.
 */
export class SharedProofs implements UsedProofs {
  readonly #options: SharedProofsOptions;
  readonly #memory: ProofMemory;
  #waiting: Waiting[] = [];
  #writing: Promise<void> | undefined;
  /**
   * The service refuses each proof whose `iat` is at most this time, because a process without replicas may have
   * accepted it.
   */
  #unsureUntil = Number.POSITIVE_INFINITY;
  #nextForget = 0;
  #closed = false;

  constructor(options: SharedProofsOptions) {
    this.#options = options;
    this.#memory = new ProofMemory(options.max);
  }

  async start(): Promise<void> {
    this.#unsureUntil = await this.#options.store.read(readHorizon);
    await untilPast(this.#unsureUntil, this.#options);
  }

  async use(
    { principal, jti, issuedAt, expiresAt }: AcceptedProof,
    kind: ProofKind,
    session?: string,
  ): Promise<Use> {
    if (issuedAt <= this.#unsureUntil) return "unsure";
    return this.#use({ principal, jti, kind, forgetTime: expiresAt + CLOCK_SKEW_MS }, session);
  }

  async useRecorded(proof: SeenProof): Promise<RecordedUse> {
    return (await this.#use(proof, undefined)) as RecordedUse;
  }

  async close(): Promise<void> {
    this.#closed = true;
    await this.#writing;
  }

  async #use(proof: SeenProof, session: string | undefined): Promise<Exclude<Use, "unsure">> {
    if (this.#closed) throw new DeputeError(ErrorReason.SHUTTING_DOWN, "the service is stopping");
    this.#memory.forget(this.#options.clock.now());
    if (this.#memory.has(proof)) return "seen";
    if (this.#memory.isFull(proof.kind)) return "full";
    // If the write fails, the proof stays in memory as used, because the store may have committed the write in spite of
    // the error.
    this.#memory.add(proof);
    return new Promise((resolve, reject) => {
      this.#waiting.push({ proof, session, resolve, reject });
      this.#writing ??= this.#writeAll();
    });
  }

  /**
   * Writes batches until no proof waits. The proofs that arrive during a write share the next write. The promise never
   * rejects.
   */
  async #writeAll(): Promise<void> {
    await this.#options.timers.nextTurn();
    while (this.#waiting.length > 0) await this.#write(this.#waiting.splice(0, BATCH));
    this.#writing = undefined;
  }

  /** Writes a batch of proofs, and settles their promises. The promise of this method never rejects. */
  async #write(batch: readonly Waiting[]): Promise<void> {
    const { store, revocations } = this.#options;
    const proofs = batch.map(({ proof }) => proof);
    const sessions = padded([...new Set(batch.flatMap(({ session }) => session ?? []))]);
    const began = revocations.begin();
    try {
      const marked = await store.write(
        async (tx) => {
          await this.#forgetSome(tx);
          const inserted = await insertNewProofs(tx, proofs);
          return {
            inserted,
            open: await openSessionIds(tx, sessions),
            isCurrent: await revocations.isCurrent(tx),
          };
        },
        { isRepeatable: true },
      );
      await revocations.settle(began, marked.isCurrent);
      const fresh = new Set(marked.inserted.map(keyOf));
      const open = new Set(marked.open);
      for (const { proof, session, resolve } of batch) {
        if (session !== undefined && !open.has(session)) resolve("closed");
        else resolve(fresh.has(keyOf(proof)) ? "fresh" : "seen");
      }
    } catch (error) {
      for (const { reject } of batch) reject(error);
    }
  }

  async #forgetSome(tx: WriteTx): Promise<void> {
    const now = this.#options.clock.now();
    if (now < this.#nextForget) return;
    this.#nextForget = now + FORGET_EVERY_MS;
    await forgetProofs(tx, now, FORGOTTEN_AT_ONCE);
  }
}

function keyOf({ principal, jti }: Pick<SeenProof, "principal" | "jti">): string {
  return `${principal} ${jti}`;
}
