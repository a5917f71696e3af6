import { type Clock, DeputeError, ErrorReason, type Timers } from "@depute/core";
import { type AcceptedProof, CLOCK_SKEW_MS } from "@depute/dct";
import type { Logger } from "@depute/service";
import type { Store } from "@depute/store";
import {
  forgetProofs,
  insertProofs,
  type ProofKind,
  readHorizon,
  readProofs,
  type SeenProof,
  writeHorizon,
} from "./store/proof-rows.ts";

const PRINCIPAL_CHARS = 43;

/** The keys (principal and `jti`) of the proofs that expire at the same time, by the kind of the proof. */
type Bucket = Record<ProofKind, string[]>;

/**
 * The used proofs, by principal and `jti`, until they expire. A proof takes about 150 bytes, or 250 with the longest
 * `jti`. If the memory is full, it refuses new proofs, because a deleted proof could be replayed. Any party can
 * generate keys and make identity proofs (proofs without a verified token). So identity proofs may fill only half of
 * the memory, and the other half stays free for proofs with a token.
 */
export class ProofMemory {
  readonly #max: number;
  readonly #keys = new Set<string>();
  /** The proofs by their expiry. Expiries are whole seconds, so there is at most one bucket for each second. */
  readonly #buckets = new Map<number, Bucket>();
  #strangers = 0;
  /** The earliest expiry among the buckets; infinity without buckets. */
  #earliest = Number.POSITIVE_INFINITY;

  constructor(max: number) {
    this.#max = max;
  }

  get size(): number {
    return this.#keys.size;
  }

  has(proof: Pick<SeenProof, "principal" | "jti">): boolean {
    return this.#keys.has(keyOf(proof));
  }

  /** Whether the memory has no room left for a kind of proof. */
  isFull(kind: ProofKind): boolean {
    if (this.#keys.size >= this.#max) return true;
    return kind === "identity" && this.#strangers >= Math.ceil(this.#max / 2);
  }

  /** Adds a proof. Returns false if the memory already contains the proof. */
  add(proof: SeenProof): boolean {
    const { kind, forgetTime } = proof;
    const key = keyOf(proof);
    if (this.#keys.has(key)) return false;
    this.#keys.add(key);
    let bucket = this.#buckets.get(forgetTime);
    if (bucket === undefined) {
      bucket = { identity: [], token: [] };
      this.#buckets.set(forgetTime, bucket);
      this.#earliest = Math.min(this.#earliest, forgetTime);
    }
    bucket[kind].push(key);
    if (kind === "identity") this.#strangers++;
    return true;
  }

  /** Deletes expired proofs. */
  forget(now: number): void {
    if (now <= this.#earliest) return;
    for (const [forgetTime, { identity, token }] of this.#buckets) {
      if (forgetTime >= now) continue;
      this.#buckets.delete(forgetTime);
      for (const key of identity) this.#keys.delete(key);
      for (const key of token) this.#keys.delete(key);
      this.#strangers -= identity.length;
    }
    this.#earliest = Math.min(...this.#buckets.keys());
  }

  /** Iterates over all proofs. */
  *entries(): Generator<SeenProof> {
    for (const [forgetTime, bucket] of this.#buckets) {
      for (const kind of ["identity", "token"] as const) {
        for (const key of bucket[kind]) {
          yield {
            principal: key.slice(0, PRINCIPAL_CHARS),
            jti: key.slice(PRINCIPAL_CHARS),
            kind,
            forgetTime,
          };
        }
      }
    }
  }
}

/** Principals have a fixed length, so the concatenation is unambiguous. */
function keyOf({ principal, jti }: Pick<SeenProof, "principal" | "jti">): string {
  return principal + jti;
}

/** When the horizon (see SeenProofs) moves, it moves to this many milliseconds after the clock's time. */
export const HORIZON_LEAD_MS = 2000;
/** One second in milliseconds. The `iat` of a proof is in whole seconds, so it may be up to one second too early. */
const SECOND_MS = 1000;
/** Maximum number of rows in one transaction. */
const BATCH = 2048;

/**
 * The result of an attempt to use a proof. `fresh`: no call has used the proof before. `seen`: a call has used it.
 * `full`: the memory has no room for it. `unsure`: an earlier process may have accepted the proof before a crash, so
 * the service refuses it. `closed`: another replica has closed the proof's holder session.
 */
export type Use = "fresh" | "seen" | "unsure" | "full" | "closed";
/** The result for a proof that the store records before the service accepts it. */
export type RecordedUse = Exclude<Use, "unsure" | "closed">;

/** The used proofs. The service accepts each proof only once (RFC 9449 section 11.1). */
export interface UsedProofs {
  /**
   * Prepares the class to decide on proofs. This can take seconds after a stop that was not clean. Call this method
   * before the other methods.
   */
  start(): Promise<void>;
  /**
   * Marks a proof as used. The result is `full` if the memory has no room for the proof.
   *
   * @param session the id of the holder session of the proof's call, if replicas share that session
   * @throws DeputeError SHUTTING_DOWN
   */
  use(proof: AcceptedProof, kind: ProofKind, session?: string): Promise<Use>;
  /**
   * Marks a proof as used, and writes the mark before the promise resolves. The proof needs no `iat`, because the mark
   * survives a crash and the result is never `unsure`.
   *
   * @throws DeputeError SHUTTING_DOWN
   */
  useRecorded(proof: SeenProof): Promise<RecordedUse>;
  /** Accepts no more proofs, and resolves when all marks are durable. The promise never rejects. */
  close(): Promise<void>;
}

interface SeenProofsOptions {
  store: Store;
  clock: Clock;
  timers: Timers;
  log: Logger;
  /** Maximum number of proofs in memory. */
  max: number;
}

/**
 * The used proofs, by principal and `jti`. The service accepts each proof only once (RFC 9449 section 11.1), even
 * across crashes. Memory holds each proof until CLOCK_SKEW_MS after its expiry, because the clock may be set back. One
 * process owns the store, so this memory has every proof since the start.
 *
 * A write of each proof to the disk would delay its call. So the store has a *horizon*: a time ahead of the clock,
 * which the service moves about once a second while calls arrive. If a proof's `iat` (time of issue) is before the
 * horizon, the service accepts the proof without a write. A proof after the horizon waits for a write.
 *
 * After a crash the service refuses each proof whose `iat` is before the stored horizon. The earlier process may have
 * accepted such a proof. The horizon is at most two seconds ahead, and the service starts after it has passed. So
 * clients with a correct clock see no refusal. A clean stop writes all proofs to the store, so the next start needs no
 * horizon.
 */
export class SeenProofs implements UsedProofs {
  readonly #options: SeenProofsOptions;
  readonly #memory: ProofMemory;
  /** The horizon in the store, in epoch milliseconds. */
  #horizon = 0;
  /**
   * The service refuses each proof whose `iat` is at most this time, because an earlier process may have accepted it.
   * Before `load`, the service refuses all proofs.
   */
  #unsureUntil = Number.POSITIVE_INFINITY;
  #raising: Promise<void> | undefined;
  readonly #recording = new Set<Promise<void>>();
  #closed = false;

  constructor(options: SeenProofsOptions) {
    this.#options = options;
    this.#memory = new ProofMemory(options.max);
  }

  /** Loads the used proofs, and waits until the horizon has passed. */
  async start(): Promise<void> {
    const { clock, timers, log } = this.#options;
    await this.load();
    await untilPast(this.#unsureUntil, { clock, timers, log });
  }

  /** Loads the used proofs and the horizon of the earlier process. Before that, the service refuses every proof. */
  async load(): Promise<void> {
    const { store, clock } = this.#options;
    let after = { principal: "", jti: "" };
    for (let proofs: SeenProof[]; ; after = proofs.at(-1) ?? after) {
      proofs = await store.read((tx) => readProofs(tx, clock.now(), after, BATCH));
      for (const proof of proofs) this.#memory.add(proof);
      if (proofs.length < BATCH) break;
    }
    this.#horizon = await store.read(readHorizon);
    this.#unsureUntil = this.#horizon;
  }

  async use(proof: AcceptedProof, kind: ProofKind): Promise<Use> {
    this.#assertOpen();
    const { clock } = this.#options;
    const { principal, jti, issuedAt, expiresAt } = proof;
    const seenProof = { principal, jti, kind, forgetTime: expiresAt + CLOCK_SKEW_MS };
    const now = clock.now();
    this.#memory.forget(now);
    if (issuedAt <= this.#unsureUntil) return "unsure";
    if (this.#memory.has(seenProof)) return "seen";
    if (this.#memory.isFull(kind)) return "full";
    if (issuedAt > now + HORIZON_LEAD_MS) await this.#record(seenProof);
    else if (issuedAt > this.#horizon) await this.#raiseTo(issuedAt);
    else if (now > this.#horizon - HORIZON_LEAD_MS / 2) this.#raise(issuedAt).catch(ignore);
    // No await follows, so only one of two equal proofs is `fresh`. If `close` has already written the memory to the
    // store, the store would lack this proof, so the assertion throws.
    this.#assertOpen();
    if (this.#memory.isFull(kind)) return "full";
    return this.#memory.add(seenProof) ? "fresh" : "seen";
  }

  async useRecorded(proof: SeenProof): Promise<RecordedUse> {
    this.#assertOpen();
    const now = this.#options.clock.now();
    this.#memory.forget(now);
    if (this.#memory.has(proof)) return "seen";
    if (this.#memory.isFull(proof.kind)) return "full";
    await this.#record(proof);
    this.#assertOpen();
    if (this.#memory.isFull(proof.kind)) return "full";
    return this.#memory.add(proof) ? "fresh" : "seen";
  }

  /** Writes all proofs in memory, so that the next start needs no horizon. The promise never rejects. */
  async close(): Promise<void> {
    const { clock, log } = this.#options;
    this.#closed = true;
    await Promise.allSettled([this.#raising, ...this.#recording]);
    if (this.#unsureUntil === Number.POSITIVE_INFINITY) return;
    this.#memory.forget(clock.now());
    try {
      await this.#writeAll();
    } catch (err) {
      log.error(
        { err },
        "used proofs cannot be written; after the next start the service refuses proofs made until now",
      );
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
    // The write in progress may have started too early to cover this proof. The loop then waits for another write.
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

/** Waits until the horizon of an earlier process has passed. Clients with a correct clock then see no refusal. */
export async function untilPast(
  horizon: number,
  { clock, timers, log }: { readonly clock: Clock; readonly timers: Timers; readonly log: Logger },
): Promise<void> {
  const remainingMs = horizon + SECOND_MS - clock.now();
  if (remainingMs <= 0) return;
  log.warn({ until: horizon }, "the last stop was not clean; the service refuses proofs made before it");
  // The horizon is further ahead only if the clock was set back. The minimum bounds the wait in that case.
  const waitMs = Math.min(remainingMs, HORIZON_LEAD_MS + SECOND_MS);
  await new Promise<void>((resolve) => void timers.after(waitMs, resolve));
}

/**
 * Ignores the error of a write. The next proof that needs the horizon repeats the write, and returns the write's error.
 */
function ignore(): void {}
