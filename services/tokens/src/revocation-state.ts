import { RevocationSet } from "@depute/dct";
import { NO_HEAD } from "./rules/checkpoint.ts";

/** The position of an entry in the log, and the digest over all entries up to it. */
interface Place {
  readonly sequence: number;
  readonly head: string;
}

/** A revoked key. The key's signatures are invalid, except on blocks that were recorded before `keepBefore`. */
export interface RevokedKey {
  readonly key: string;
  /** In epoch milliseconds: a block stays valid if it was recorded before this time. */
  readonly keepBefore: number;
  /** The revocation ids of the blocks that stay valid. */
  readonly keptBlocks: readonly string[];
}

/** A pending entry. `added` is the number that the entry got when it was added. */
export interface PendingKey {
  readonly revocationId: string;
  readonly revokedBy: string;
  readonly added: number;
}

/**
 * The revocations that this process has read: the ids of all revoked blocks in the log, the revoked keys, and the
 * pending entries. A pending entry waits for proof that its revoker is rightful. The class never forgets a block or key
 * of the log.
 */
export class RevocationState {
  readonly #maxStalenessMs: number;
  readonly #revoked = new RevocationSet();
  /** For each block, the principals with a pending entry, and the number of each entry. */
  readonly #pending = new Map<string, Map<string, number>>();
  readonly #keys = new Map<string, { keepBefore: number; kept: RevocationSet }>();
  /** The keys that revoke themselves in a pending revocation, each with the number of that revocation. */
  readonly #pendingKeys = new Map<string, number>();
  /** The number of pending revocations that were added since the start. It is the number of the latest one. */
  #added = 0;
  #sequence = 0;
  #head = NO_HEAD;
  #isConflicting = false;
  #finalDenial = Number.NEGATIVE_INFINITY;

  /**
   * Creates an empty state.
   *
   * @param maxStalenessMs the service refuses decisions if the last complete read began more than this many
   * milliseconds ago
   */
  constructor(maxStalenessMs: number) {
    this.#maxStalenessMs = maxStalenessMs;
  }

  /** Returns the highest sequence up to which this process has read the log without gaps. */
  get sequence(): number {
    return this.#sequence;
  }

  /** Returns the digest over the log's entries up to `sequence`. */
  get head(): string {
    return this.#head;
  }

  /** Whether the log was found to be shorter or different. If so, the service refuses every decision. */
  get isConflicting(): boolean {
    return this.#isConflicting;
  }

  /** Returns the number of revoked blocks. */
  get size(): number {
    return this.#revoked.size;
  }

  /**
   * Whether a block is revoked: by an entry of the log, by the revocation of its signer's key, or by a pending entry. A
   * pending entry counts only if its revoker is one of `rightful`. The presented chain determines the rightful revokers
   * (rightfulRevokers of packages/dct), in this order: the signers of the blocks above, the block's signer and its
   * delegatee.
   */
  isRevoked(revocationId: string, rightful: readonly string[]): boolean {
    return (
      this.#revoked.has(revocationId) ||
      (this.#keys.size + this.#pendingKeys.size > 0 &&
        this.#isKeyRevoked(revocationId, rightful.at(-2) ?? "")) ||
      this.isPending(revocationId, rightful)
    );
  }

  /** Whether one of these revokers has a pending entry for a block. */
  isPending(revocationId: string, rightful: readonly string[]): boolean {
    const revokers = this.#pending.get(revocationId);
    return revokers !== undefined && rightful.some((principal) => revokers.has(principal));
  }

  /** Whether a key is revoked. The service denies each proof by a revoked key. */
  isRevokedKey(principal: string): boolean {
    return this.#keys.has(principal) || this.#pendingKeys.has(principal);
  }

  isStale(now: number): boolean {
    return this.age(now) > this.#maxStalenessMs;
  }

  /** Returns the milliseconds since the start of the last complete read. */
  age(now: number): number {
    return now - this.#finalDenial;
  }

  /**
   * Adds an entry of the log. The entry is in force at once, even if this process lacks earlier entries. The reader
   * later adds the entry again in order, after the earlier entries.
   */
  add(place: Place, revocationId: string): void {
    this.#revoked.add(revocationId);
    this.addPruned(place);
  }

  /**
   * Adds a key revocation of the log. If the key has two revocations, the one with the earlier `keepBefore` applies.
   */
  addKey(place: Place, { key, keepBefore, keptBlocks }: RevokedKey): void {
    const keyRevocation = this.#keys.get(key);
    if (keyRevocation === undefined || keepBefore < keyRevocation.keepBefore) {
      const ids = new RevocationSet();
      for (const id of keptBlocks) ids.add(id);
      this.#keys.set(key, { keepBefore, kept: ids });
    }
    this.addPruned(place);
  }

  /** Adds the position of a log entry whose content was pruned. */
  addPruned({ sequence, head }: Place): void {
    if (sequence !== this.#sequence + 1) return;
    this.#sequence = sequence;
    this.#head = head;
  }

  /**
   * Records that the log contradicts the entries that this process has read. The service then refuses every decision.
   */
  markConflict(): void {
    this.#isConflicting = true;
  }

  /** Returns the pending entries. */
  pending(): PendingKey[] {
    return [...this.#pending].flatMap(([revocationId, revokers]) =>
      [...revokers].map(([revokedBy, added]) => ({ revocationId, revokedBy, added })),
    );
  }

  /** Returns the keys that revoke themselves in a pending revocation. */
  pendingKeys(): { readonly key: string; readonly added: number }[] {
    return [...this.#pendingKeys].map(([key, added]) => ({ key, added }));
  }

  addPending({ revocationId, revokedBy }: { revocationId: string; revokedBy: string }): void {
    const revokers = this.#pending.get(revocationId) ?? new Map();
    revokers.set(revokedBy, ++this.#added);
    this.#pending.set(revocationId, revokers);
  }

  /**
   * Removes a pending entry after the log contains it, or after it has expired.
   *
   * @param added if the entry has a higher number, it was added again and stays
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

  /** Adds a pending revocation in which a key revokes itself. A pending revocation is in force. */
  addPendingKey(key: string): void {
    this.#pendingKeys.set(key, ++this.#added);
  }

  /**
   * Removes the pending revocation in which a key revokes itself, after the log contains it or it has expired.
   *
   * @param added if the revocation has a higher number, it was added again and stays
   */
  dropPendingKey(key: string, added: number = Number.POSITIVE_INFINITY): void {
    if ((this.#pendingKeys.get(key) ?? 0) <= added) this.#pendingKeys.delete(key);
  }

  /** Records that this process has read every entry that was recorded before a time, in epoch milliseconds. */
  markRead(time: number): void {
    this.#finalDenial = Math.max(this.#finalDenial, time);
  }

  #isKeyRevoked(revocationId: string, signer: string): boolean {
    const revoked = this.#keys.get(signer);
    if (revoked !== undefined) return !revoked.kept.has(revocationId);
    return this.#pendingKeys.has(signer);
  }
}
