import { RevokedIds } from "./revoked-ids.ts";

/**
 * What this process knows of revocations: every id of the log, and what waits for its right to be proved. Nothing is
 * ever taken out of the log's ids.
 */
export class RevocationState {
  readonly #maxStalenessMs: number;
  readonly #revoked = new RevokedIds();
  readonly #pending = new Map<string, Set<string>>();
  #sequence = 0;
  #lastLook = Number.NEGATIVE_INFINITY;

  /** @param maxStalenessMs milliseconds after a look at the log until what is known is too old to decide by */
  constructor(maxStalenessMs: number) {
    this.#maxStalenessMs = maxStalenessMs;
  }

  /** The newest sequence up to which the whole log is known. */
  get sequence(): number {
    return this.#sequence;
  }

  /** How many blocks are revoked. */
  get size(): number {
    return this.#revoked.size;
  }

  /**
   * Whether a block is revoked: by the log, whose entries' rights were proved, or by an entry that waits and whose
   * revoker is one of the `rightful` by the chain that is presented.
   */
  isRevoked(revocationId: string, rightful: readonly string[]): boolean {
    return this.#revoked.has(revocationId) || this.isPending(revocationId, rightful);
  }

  /** Whether an entry waits for a block by one of these revokers. */
  isPending(revocationId: string, rightful: readonly string[]): boolean {
    const revokers = this.#pending.get(revocationId);
    return revokers !== undefined && rightful.some((principal) => revokers.has(principal));
  }

  isStale(now: number): boolean {
    return now - this.#lastLook > this.#maxStalenessMs;
  }

  /** Takes an entry of the log. One that is ahead of what is known counts at once, and is met again in its order. */
  add(sequence: number, revocationId: string): void {
    this.#revoked.add(revocationId);
    if (sequence === this.#sequence + 1) this.#sequence = sequence;
  }

  addPending({ revocationId, revokedBy }: { revocationId: string; revokedBy: string }): void {
    const revokers = this.#pending.get(revocationId) ?? new Set();
    revokers.add(revokedBy);
    this.#pending.set(revocationId, revokers);
  }

  /** Forgets what waited, once the log has it. */
  dropPending({ revocationId, revokedBy }: { revocationId: string; revokedBy: string }): void {
    const revokers = this.#pending.get(revocationId);
    revokers?.delete(revokedBy);
    if (revokers?.size === 0) this.#pending.delete(revocationId);
  }

  /** Notes that everything recorded before this moment is known. */
  looked(time: number): void {
    this.#lastLook = Math.max(this.#lastLook, time);
  }
}
