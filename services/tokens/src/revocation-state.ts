import { RevocationSet } from "@depute/dct";
import { NO_HEAD } from "./rules/checkpoint.ts";

/** The position of a log entry, and the digest over all entries up to it. */
interface Place {
  readonly sequence: number;
  readonly head: string;
}

/** A revoked key. The key's signatures are invalid, except on blocks that were recorded before a given time. */
export interface RevokedKey {
  readonly key: string;
  /** Blocks that were recorded before this time stay valid. Milliseconds since 1970. */
  readonly keepBefore: number;
  /** The revocation ids of the blocks that stay valid. */
  readonly keptBlocks: readonly string[];
}

/** A waiting entry, with the number of its addition. */
export interface PendingKey {
  readonly revocationId: string;
  readonly revokedBy: string;
  readonly added: number;
}

/**
 * The revocations that this process has read: the ids of all revoked blocks in the log, and the waiting entries. A
 * waiting entry needs proof that its revoker is rightful. Ids from the log are never removed.
 */
export class RevocationState {
  readonly #maxStalenessMs: number;
  readonly #revoked = new RevocationSet();
  /** The waiting entries by block and revoker, with the number of their addition. */
  readonly #pending = new Map<string, Map<string, number>>();
  readonly #keys = new Map<string, { keepBefore: number; kept: RevocationSet }>();
  /** Keys without a recorded block whose own revocation waits in the pool, with the number of their addition. */
  readonly #pendingKeys = new Map<string, number>();
  /** The number of additions of waiting revocations. */
  #added = 0;
  #sequence = 0;
  #head = NO_HEAD;
  #isConflicting = false;
  #finalDenial = Number.NEGATIVE_INFINITY;

  /**
   * Creates an empty state.
   *
   * @param maxStalenessMs the age of the last complete read, in milliseconds, from which on decisions are refused
   */
  constructor(maxStalenessMs: number) {
    this.#maxStalenessMs = maxStalenessMs;
  }

  /** Returns the highest sequence up to which the log is read without gaps. */
  get sequence(): number {
    return this.#sequence;
  }

  /** Returns the digest over the log's entries up to `sequence`. */
  get head(): string {
    return this.#head;
  }

  /** Whether the log was found shorter or different. If so, every decision is refused. */
  get isConflicting(): boolean {
    return this.#isConflicting;
  }

  /** Returns the number of revoked blocks. */
  get size(): number {
    return this.#revoked.size;
  }

  /**
   * Whether a block is revoked. There are three causes: an entry of the log, the revocation of the signer's
   * key, or a waiting entry. A waiting entry counts only if its revoker is one of `rightful`. The presented
   * chain determines the rightful revokers (rightfulRevokers of packages/dct): the signers of the blocks above,
   * the block's signer and its delegatee.
   */
  isRevoked(revocationId: string, rightful: readonly string[]): boolean {
    return (
      this.#revoked.has(revocationId) ||
      (this.#keys.size + this.#pendingKeys.size > 0 &&
        this.#isKeyRevoked(revocationId, rightful.at(-2) ?? "")) ||
      this.isPending(revocationId, rightful)
    );
  }

  /** Whether one of these revokers has a waiting entry for a block. */
  isPending(revocationId: string, rightful: readonly string[]): boolean {
    const revokers = this.#pending.get(revocationId);
    return revokers !== undefined && rightful.some((principal) => revokers.has(principal));
  }

  /** Whether a key is revoked. A proof by a revoked key proves nothing. */
  isRevokedKey(principal: string): boolean {
    return this.#keys.has(principal) || this.#pendingKeys.has(principal);
  }

  isStale(now: number): boolean {
    return this.age(now) > this.#maxStalenessMs;
  }

  /** Returns the milliseconds since the last complete read began. */
  age(now: number): number {
    return now - this.#finalDenial;
  }

  /**
   * Adds an entry of the log. The entry is in force at once, even if earlier entries are missing. The caller later adds
   * it again in order, after the missing entries.
   */
  add(place: Place, revocationId: string): void {
    this.#revoked.add(revocationId);
    this.addPruned(place);
  }

  /** Adds a key revocation of the log. If a key has two, the stricter one applies. */
  addKey(place: Place, { key, keepBefore, keptBlocks }: RevokedKey): void {
    const keyRevocation = this.#keys.get(key);
    if (keyRevocation === undefined || keepBefore < keyRevocation.keepBefore) {
      const ids = new RevocationSet();
      for (const id of keptBlocks) ids.add(id);
      this.#keys.set(key, { keepBefore, kept: ids });
    }
    this.addPruned(place);
  }

  /** Adds the position of a log entry whose content was deleted. */
  addPruned({ sequence, head }: Place): void {
    if (sequence !== this.#sequence + 1) return;
    this.#sequence = sequence;
    this.#head = head;
  }

  /**
   * Records that the log contradicts the entries that this process read before. Every later decision is
   * refused.
   */
  markConflict(): void {
    this.#isConflicting = true;
  }

  /** Returns the waiting entries. */
  pending(): PendingKey[] {
    return [...this.#pending].flatMap(([revocationId, revokers]) =>
      [...revokers].map(([revokedBy, added]) => ({ revocationId, revokedBy, added })),
    );
  }

  /** Returns the keys whose own revocations wait. */
  pendingKeys(): { readonly key: string; readonly added: number }[] {
    return [...this.#pendingKeys].map(([key, added]) => ({ key, added }));
  }

  addPending({ revocationId, revokedBy }: { revocationId: string; revokedBy: string }): void {
    const revokers = this.#pending.get(revocationId) ?? new Map();
    revokers.set(revokedBy, ++this.#added);
    this.#pending.set(revocationId, revokers);
  }

  /**
   * Removes a waiting entry after the log contains it, or after it has expired.
   *
   * @param added removes the entry only if it was not added again since
   */
  dropPending(
    { revocationId, revokedBy }: { revocationId: string; revokedBy: string },
    added: number = Number.POSITIVE_INFINITY,
  ): void {
    const revokers = this.#pending.get(revocationId);
    if ((revokers?.get(revokedBy) ?? 0) > added) return;
    revokers?.delete(revokedBy);
    if (revokers?.size === 0) this.#pending.delete(revocationId);
  }

  /** Adds a waiting revocation in which a key revokes itself. The revocation is in force while it waits. */
  addPendingKey(key: string): void {
    this.#pendingKeys.set(key, ++this.#added);
  }

  /**
   * Removes the waiting revocation in which a key revokes itself. The log now contains the revocation, or the
   * revocation has expired.
   *
   * @param added removes the revocation only if it was not added again since
   */
  dropPendingKey(key: string, added: number = Number.POSITIVE_INFINITY): void {
    if ((this.#pendingKeys.get(key) ?? 0) <= added) this.#pendingKeys.delete(key);
  }

  /** Records that every entry from before this time has been read. */
  markRead(time: number): void {
    this.#finalDenial = Math.max(this.#finalDenial, time);
  }

  #isKeyRevoked(revocationId: string, signer: string): boolean {
    const revoked = this.#keys.get(signer);
    if (revoked !== undefined) return !revoked.kept.has(revocationId);
    return this.#pendingKeys.has(signer);
  }
}
