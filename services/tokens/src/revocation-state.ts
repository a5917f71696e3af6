import { RevocationSet } from "@depute/dct";
import { NO_HEAD } from "./rules/checkpoint.ts";

/** A place of the log, and the log's head there. */
interface Place {
  readonly sequence: number;
  readonly head: string;
}

/** A key whose signatures do not count, but for blocks that were recorded before a time. */
export interface RevokedKey {
  readonly key: string;
  /** Milliseconds since 1970. */
  readonly keepBefore: number;
  /** The revocation ids of those blocks. */
  readonly kept: readonly string[];
}

/**
 * What this process knows of revocations: every id of the log, and what waits for its right to be proved. Nothing is
 * ever taken out of the log's ids.
 */
export class RevocationState {
  readonly #maxStalenessMs: number;
  readonly #revoked = new RevocationSet();
  readonly #pending = new Map<string, Set<string>>();
  readonly #keys = new Map<string, { keepBefore: number; kept: RevocationSet }>();
  /** Keys that no recorded block names and that have revoked themselves. */
  readonly #pendingKeys = new Set<string>();
  #sequence = 0;
  #head = NO_HEAD;
  #isConflicting = false;
  #lastLook = Number.NEGATIVE_INFINITY;

  /** @param maxStalenessMs milliseconds after a look at the log until what is known is too old to decide by */
  constructor(maxStalenessMs: number) {
    this.#maxStalenessMs = maxStalenessMs;
  }

  /** The newest sequence up to which the whole log is known. */
  get sequence(): number {
    return this.#sequence;
  }

  /** The head of the log up to there. */
  get head(): string {
    return this.#head;
  }

  /** Whether the log was found to have gone back or to say something else than before: then nothing can be decided. */
  get isConflicting(): boolean {
    return this.#isConflicting;
  }

  /** How many blocks are revoked. */
  get size(): number {
    return this.#revoked.size;
  }

  /**
   * Whether a block is revoked: by the log, whose entries' rights were proved; since its signer's key is; or by an entry
   * that waits and whose revoker is one of the `rightful` by the chain that is presented, as rightfulRevokers of
   * packages/dct gives them: the signers above, the block's signer, its delegatee.
   */
  isRevoked(revocationId: string, rightful: readonly string[]): boolean {
    return (
      this.#revoked.has(revocationId) ||
      (this.#keys.size + this.#pendingKeys.size > 0 &&
        this.#isKeyRevoked(revocationId, rightful.at(-2) ?? "")) ||
      this.isPending(revocationId, rightful)
    );
  }

  /** Whether an entry waits for a block by one of these revokers. */
  isPending(revocationId: string, rightful: readonly string[]): boolean {
    const revokers = this.#pending.get(revocationId);
    return revokers !== undefined && rightful.some((principal) => revokers.has(principal));
  }

  /** Whether a key was revoked: nobody knows any more who holds it. */
  isRevokedKey(principal: string): boolean {
    return this.#keys.has(principal) || this.#pendingKeys.has(principal);
  }

  isStale(now: number): boolean {
    return now - this.#lastLook > this.#maxStalenessMs;
  }

  /** Takes an entry of the log. One that is ahead of what is known counts at once, and is met again in its order. */
  add(place: Place, revocationId: string): void {
    this.#revoked.add(revocationId);
    this.pass(place);
  }

  /** Takes a key's revocation of the log. Of two the one that keeps less counts. */
  addKey(place: Place, { key, keepBefore, kept }: RevokedKey): void {
    const known = this.#keys.get(key);
    if (known === undefined || keepBefore < known.keepBefore) {
      const ids = new RevocationSet();
      for (const id of kept) ids.add(id);
      this.#keys.set(key, { keepBefore, kept: ids });
    }
    this.pass(place);
  }

  /** Takes a place of the log that says nothing any more. */
  pass({ sequence, head }: Place): void {
    if (sequence !== this.#sequence + 1) return;
    this.#sequence = sequence;
    this.#head = head;
  }

  /** Notes that the log is not the one that was known. */
  conflict(): void {
    this.#isConflicting = true;
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

  /** Takes a key's own statement that waits: it counts as long as it does. */
  addPendingKey(key: string): void {
    this.#pendingKeys.add(key);
  }

  /** Forgets a statement that waited, once the log has it or its time is over. */
  dropPendingKey(key: string): void {
    this.#pendingKeys.delete(key);
  }

  /** Notes that everything recorded before this moment is known. */
  looked(time: number): void {
    this.#lastLook = Math.max(this.#lastLook, time);
  }

  #isKeyRevoked(revocationId: string, signer: string): boolean {
    const revoked = this.#keys.get(signer);
    if (revoked !== undefined) return !revoked.kept.has(revocationId);
    return this.#pendingKeys.has(signer);
  }
}
