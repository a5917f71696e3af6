import type { Bus } from "@depute/bus";
import { type Clock, DeputeError, ErrorReason } from "@depute/core";
import { type CryptoEngine, mayRevoke, type RevocationEntry } from "@depute/dct";
import type { Store, WriteTx } from "@depute/store";
import type { AuditLog } from "./audit-log.ts";
import type { DelegationLog } from "./delegation-log.ts";
import type { KnownKeys } from "./known-keys.ts";
import type { PendingPool } from "./pending-pool.ts";
import { REVOCATIONS_TOPIC } from "./revocation-reader.ts";
import type { RevocationState } from "./revocation-state.ts";
import type { Block } from "./rules/documents.ts";
import { hasBlock, mayRevokeRecorded } from "./store/block-rows.ts";
import { findPending, keepPending, settlePending } from "./store/pending-rows.ts";
import {
  appendRevocation,
  countSince,
  findRevocations,
  type LoggedRevocation,
} from "./store/revocation-rows.ts";

/**
 * The result of `#record` if an entry must wait, and `record` must first ask other services whether the revoker's key
 * is known.
 */
const NEEDS_LOOKUP = Symbol("unplaced");

const DAY_MS = 24 * 60 * 60 * 1000;

interface LogOptions {
  engine: CryptoEngine;
  /** Whether a principal is a root of the platform that is not retired. Such a root has no quota. */
  isRoot: (principal: string) => boolean;
  store: Store;
  bus: Bus;
  clock: Clock;
  state: RevocationState;
  audit: AuditLog;
  delegations: DelegationLog;
  knownKeys: Pick<KnownKeys, "isRecorded" | "isNamed">;
  pool: PendingPool;
  /** Resolves when the checkpoint file durably covers the log up to a sequence. */
  saved: (sequence: number) => Promise<void>;
  /** Maximum number of blocks that one principal may revoke within a day. */
  maxDaily: number;
}

/**
 * Writes the ordered log of revocations (DelegateOS 4). Each revoker of a block has its own entry, so no revoker can
 * prevent another revoker's entry. If the log has an entry of the same revoker with the same or a wider scope, the
 * class logs nothing. Depute's choice: the class logs a later entry with a wider scope, because readers must then also
 * stop the work below the block.
 */
export class RevocationLog {
  readonly #options: LogOptions;

  constructor(options: LogOptions) {
    this.#options = options;
  }

  /**
   * Durably records an entry with a valid signature.
   *
   * @param chain blocks of the verified token in the request; empty if the request has no token
   * @returns undefined if the entry must wait for a chain that proves that its revoker is rightful
   * @throws DeputeError NOT_AUTHORIZED_TO_REVOKE; LIMIT_EXCEEDED if too many entries wait, or the revoker has used its
   * daily quota; DEPENDENCY_UNAVAILABLE if the checkpoint file cannot be written
   */
  async record(
    entry: RevocationEntry,
    caller: string,
    chain: readonly Block[],
  ): Promise<LoggedRevocation | undefined> {
    const { store, knownKeys } = this.#options;
    let recorded = await store.write((tx) => this.#record(tx, entry, chain, { caller }));
    if (recorded === NEEDS_LOOKUP) {
      const isKnown = await knownKeys.isNamed(entry.revokedBy);
      recorded = await store.write((tx) => this.#record(tx, entry, chain, { caller, isKnown }));
    }
    return recorded === NEEDS_LOOKUP || recorded === undefined ? undefined : this.#acknowledged(recorded);
  }

  /**
   * Records an entry for `record`, within a transaction.
   *
   * @returns undefined if the entry now waits; NEEDS_LOOKUP if it must wait, but other services must first look up the
   * revoker's key
   */
  async #record(
    tx: WriteTx,
    entry: RevocationEntry,
    chain: readonly Block[],
    by: { caller: string; isKnown?: boolean },
  ): Promise<LoggedRevocation | typeof NEEDS_LOOKUP | undefined> {
    const covering = await findCovering(tx, entry);
    if (covering !== undefined) return covering;
    if (mayRevoke(entry, chain) || (await mayRevokeRecorded(tx, entry.revocationId, entry.revokedBy))) {
      const logged = await this.#append(tx, entry, by.caller);
      // `#append` may also have logged a pending entry of the same revoker with a wider scope.
      return (await findCovering(tx, entry)) ?? logged;
    }
    const isKnown =
      chain.some(({ revocationId }) => revocationId === entry.revocationId) ||
      (await hasBlock(tx, entry.revocationId));
    if (isKnown) {
      throw new DeputeError(
        ErrorReason.NOT_AUTHORIZED_TO_REVOKE,
        "the revoker must be the signer of the block or of a block above it, or the delegatee of the block",
        { violations: [{ field: "entry.revoked_by", description: "may not revoke this block" }] },
      );
    }
    return this.#wait(tx, entry, by);
  }

  /**
   * Durably records an entry of the platform's root, for a recorded block that the root signed.
   *
   * @throws DeputeError TOKEN_NOT_FOUND for every other block; DEPENDENCY_UNAVAILABLE if the checkpoint file cannot be
   * written
   */
  async recordOwn(entry: RevocationEntry, caller: string): Promise<LoggedRevocation> {
    const logged = await this.#options.store.write(async (tx) => {
      const covering = await findCovering(tx, entry);
      if (covering !== undefined) return covering;
      if (!(await hasBlock(tx, entry.revocationId, entry.revokedBy))) {
        throw new DeputeError(
          ErrorReason.TOKEN_NOT_FOUND,
          "the platform has not signed this block; send an entry that a rightful revoker has signed",
          {
            metadata: { revocation_id: entry.revocationId },
          },
        );
      }
      return this.#append(tx, entry, caller);
    });
    return this.#acknowledged(logged);
  }

  /**
   * Waits until the checkpoint file covers the entry. If an operator later restores an older copy of the store, the
   * file then shows that the entry is missing.
   */
  async #acknowledged(logged: LoggedRevocation): Promise<LoggedRevocation> {
    await this.#options.saved(logged.sequence);
    return logged;
  }

  /** Records an entry within a transaction. The calling code must have proven that the revoker is rightful. */
  async recordWithin(tx: WriteTx, entry: RevocationEntry, caller: string): Promise<LoggedRevocation> {
    return (await findCovering(tx, entry)) ?? this.#append(tx, entry, caller);
  }

  /** Logs those pending entries whose revokers are rightful according to this verified chain. */
  async settle(chain: readonly Block[], caller: string): Promise<void> {
    await this.#options.store.write(async (tx) => {
      for (const { revocationId } of chain) {
        for (const revokedBy of new Set(chain.flatMap(({ signer, delegatee }) => [signer, delegatee]))) {
          const entry = { revocationId, revokedBy };
          if (mayRevoke(entry, chain)) await this.#settle(tx, entry, caller);
        }
      }
    });
  }

  async #append(tx: WriteTx, entry: RevocationEntry, caller: string): Promise<LoggedRevocation> {
    const { engine, bus, clock, state, audit, delegations } = this.#options;
    await this.#assertQuota(tx, entry);
    const logged = await appendRevocation(tx, engine, entry, clock.now());
    await audit.write(tx, { ...decision(entry, caller), decision: "allowed", reason: entry.scope });
    await delegations.revoke(tx, entry);
    // This process applies the entry before the call returns. Other processes get a wake-up, and also poll.
    tx.afterCommit(() => {
      state.add(logged, entry.revocationId);
      bus.publish(REVOCATIONS_TOPIC, entry.revocationId);
    });
    await this.#settle(tx, entry, caller);
    return logged;
  }

  /**
   * Checks the principal's daily quota. The log is permanent, so no principal may add entries without limit.
   *
   * @throws DeputeError LIMIT_EXCEEDED
   */
  async #assertQuota(tx: WriteTx, { revokedBy }: RevocationEntry): Promise<void> {
    const { isRoot, clock, maxDaily } = this.#options;
    if (isRoot(revokedBy)) return;
    if ((await countSince(tx, revokedBy, clock.now() - DAY_MS, maxDaily)) < maxDaily) return;
    throw new DeputeError(
      ErrorReason.LIMIT_EXCEEDED,
      "the revoker has revoked too many blocks within a day; try again later",
      {
        metadata: { limit: "daily_revocations", max: String(maxDaily) },
      },
    );
  }

  /**
   * Logs all pending entries of one revoker for one block. The calling code must have proven that the revoker is
   * rightful.
   */
  async #settle(
    tx: WriteTx,
    key: Pick<RevocationEntry, "revocationId" | "revokedBy">,
    caller: string,
  ): Promise<void> {
    const waiting = await findPending(tx, key, this.#options.clock.now());
    if (waiting.length === 0) return;
    await settlePending(tx, key);
    for (const entry of waiting) {
      if ((await findCovering(tx, entry)) === undefined) await this.#append(tx, entry, caller);
    }
    tx.afterCommit(() => this.#options.state.dropPending(key));
  }

  async #wait(
    tx: WriteTx,
    entry: RevocationEntry,
    by: { caller: string; isKnown?: boolean },
  ): Promise<typeof NEEDS_LOOKUP | undefined> {
    const { bus, clock, state, audit, knownKeys, pool } = this.#options;
    const isKnown = by.isKnown === true || (await knownKeys.isRecorded(tx, entry.revokedBy));
    const waiting = await findPending(tx, entry, clock.now());
    if (isKnown) await keepPending(tx, entry);
    if (waiting.some((one) => covers(one, entry))) return undefined;
    if (!isKnown && by.isKnown === undefined) return NEEDS_LOOKUP;
    const { caller } = by;
    await pool.add(tx, entry.revocationId, { entry }, { caller, isKnown });
    await audit.write(tx, { ...decision(entry, caller), decision: "allowed", reason: "pending" });
    tx.afterCommit(() => {
      state.addPending(entry);
      bus.publish(REVOCATIONS_TOPIC, entry.revocationId);
    });
    return undefined;
  }
}

/**
 * Returns a logged entry of the same revoker for the same block, with the same or a wider scope; undefined if there is
 * none.
 */
async function findCovering(tx: WriteTx, entry: RevocationEntry): Promise<LoggedRevocation | undefined> {
  const logged = await findRevocations(tx, entry);
  return logged.find((one) => one.entry.scope === "chain") ?? logged.find((one) => covers(one.entry, entry));
}

function covers(one: RevocationEntry, other: RevocationEntry): boolean {
  return one.scope === other.scope || one.scope === "chain";
}

function decision({ revocationId, revokedBy }: RevocationEntry, caller: string) {
  return { kind: "revoke", caller, principal: revokedBy, blocks: [revocationId] } as const;
}
