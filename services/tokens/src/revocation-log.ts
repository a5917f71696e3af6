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
import type { Block } from "./rules/blocks.ts";
import { hasBlock, mayRevokeRecorded } from "./store/block-rows.ts";
import { findPending, keepPending, settlePending } from "./store/pending-rows.ts";
import {
  appendRevocation,
  countSince,
  findRevocations,
  type LoggedRevocation,
} from "./store/revocation-rows.ts";

/** It waits, and who revokes is to be asked about first. */
const UNPLACED = Symbol("unplaced");

const DAY_MS = 24 * 60 * 60 * 1000;

interface LogOptions {
  engine: CryptoEngine;
  /** The platform's root, which no quota holds up. */
  root: string;
  store: Store;
  bus: Bus;
  clock: Clock;
  state: RevocationState;
  audit: AuditLog;
  delegations: DelegationLog;
  known: Pick<KnownKeys, "isRecorded" | "isNamed">;
  pool: PendingPool;
  /** Resolves when the checkpoint beside the store, too, has the log up to a sequence. */
  saved: (sequence: number) => Promise<void>;
  /** Blocks that one principal may revoke within a day. */
  maxDaily: number;
}

/**
 * Writes the ordered log of revocations (DelegateOS 4).
 *
 * The log has an entry for each revoker of a block: the first to come must not stand in the way of one with another
 * right or a wider scope. An entry that says what the log has already, or less, is not written again. One of a wider
 * scope is Depute's choice to log anew, since who follows the log has to learn that the work below is to be stopped.
 */
export class RevocationLog {
  readonly #options: LogOptions;

  constructor(options: LogOptions) {
    this.#options = options;
  }

  /**
   * Records an entry whose signature holds, durably.
   *
   * @param chain blocks of a verified token that was sent along; empty without one
   * @returns undefined while it waits for a chain that proves the revoker's right
   * @throws DeputeError NOT_AUTHORIZED_TO_REVOKE, LIMIT_EXCEEDED when too many wait
   */
  async record(
    entry: RevocationEntry,
    caller: string,
    chain: readonly Block[],
  ): Promise<LoggedRevocation | undefined> {
    const { store, known } = this.#options;
    let recorded = await store.write((tx) => this.#record(tx, entry, chain, { caller }));
    if (recorded === UNPLACED) {
      const isKnown = await known.isNamed(entry.revokedBy);
      recorded = await store.write((tx) => this.#record(tx, entry, chain, { caller, isKnown }));
    }
    return recorded === UNPLACED || recorded === undefined ? undefined : this.#acknowledged(recorded);
  }

  /** @returns UNPLACED when it waits, and others have to be asked first whether its revoker is known */
  async #record(
    tx: WriteTx,
    entry: RevocationEntry,
    chain: readonly Block[],
    by: { caller: string; isKnown?: boolean },
  ): Promise<LoggedRevocation | typeof UNPLACED | undefined> {
    const known = await covered(tx, entry);
    if (known !== undefined) return known;
    if (mayRevoke(entry, chain) || (await mayRevokeRecorded(tx, entry.revocationId, entry.revokedBy))) {
      const logged = await this.#append(tx, entry, by.caller);
      // What the same revoker said before may have been wider, and has just been logged as well.
      return (await covered(tx, entry)) ?? logged;
    }
    const isKnown =
      chain.some(({ revocationId }) => revocationId === entry.revocationId) ||
      (await hasBlock(tx, entry.revocationId));
    if (isKnown) {
      throw new DeputeError(
        ErrorReason.NOT_AUTHORIZED_TO_REVOKE,
        "the revoker neither signed the block or one above it, nor holds it",
        { violations: [{ field: "entry.revoked_by", description: "may not revoke this block" }] },
      );
    }
    return this.#wait(tx, entry, by);
  }

  /** As record, for an entry by the root that signed a recorded block. */
  async recordOwn(entry: RevocationEntry, caller: string): Promise<LoggedRevocation> {
    const logged = await this.#options.store.write(async (tx) => {
      const known = await covered(tx, entry);
      if (known !== undefined) return known;
      if (!(await hasBlock(tx, entry.revocationId, entry.revokedBy))) {
        throw new DeputeError(ErrorReason.TOKEN_NOT_FOUND, "the platform signed no such block", {
          metadata: { revocation_id: entry.revocationId },
        });
      }
      return this.#append(tx, entry, caller);
    });
    return this.#acknowledged(logged);
  }

  /** What is acknowledged is in the checkpoint as well, so that no older copy of the store passes for the present one. */
  async #acknowledged(logged: LoggedRevocation): Promise<LoggedRevocation> {
    await this.#options.saved(logged.sequence);
    return logged;
  }

  /** As record, within a transaction, for an entry whose revoker's right is proved. */
  async recordWithin(tx: WriteTx, entry: RevocationEntry, caller: string): Promise<LoggedRevocation> {
    return (await covered(tx, entry)) ?? this.#append(tx, entry, caller);
  }

  /** Logs what waited for the right that a verified chain now proves. */
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
    // Before the answer goes out, this process knows; the others are woken, and look by themselves otherwise.
    tx.afterCommit(() => {
      state.add(logged, entry.revocationId);
      bus.publish(REVOCATIONS_TOPIC, entry.revocationId);
    });
    await this.#settle(tx, entry, caller);
    return logged;
  }

  /** @throws DeputeError LIMIT_EXCEEDED: what is logged is kept, so that nobody may fill the log */
  async #assertQuota(tx: WriteTx, { revokedBy }: RevocationEntry): Promise<void> {
    const { root, clock, maxDaily } = this.#options;
    if (revokedBy === root) return;
    if ((await countSince(tx, revokedBy, clock.now() - DAY_MS, maxDaily)) < maxDaily) return;
    throw new DeputeError(
      ErrorReason.LIMIT_EXCEEDED,
      "the revoker has revoked too many blocks within a day",
      {
        metadata: { limit: "daily_revocations", max: String(maxDaily) },
      },
    );
  }

  /** The right to revoke a block has been proved: what its revoker said before counts too. */
  async #settle(
    tx: WriteTx,
    key: Pick<RevocationEntry, "revocationId" | "revokedBy">,
    caller: string,
  ): Promise<void> {
    const waiting = await findPending(tx, key, this.#options.clock.now());
    if (waiting.length === 0) return;
    await settlePending(tx, key);
    for (const entry of waiting) {
      if ((await covered(tx, entry)) === undefined) await this.#append(tx, entry, caller);
    }
    tx.afterCommit(() => this.#options.state.dropPending(key));
  }

  async #wait(
    tx: WriteTx,
    entry: RevocationEntry,
    by: { caller: string; isKnown?: boolean },
  ): Promise<typeof UNPLACED | undefined> {
    const { bus, clock, state, audit, known, pool } = this.#options;
    const isKnown = by.isKnown === true || (await known.isRecorded(tx, entry.revokedBy));
    const waiting = await findPending(tx, entry, clock.now());
    if (isKnown) await keepPending(tx, entry);
    if (waiting.some((one) => covers(one, entry))) return undefined;
    if (!isKnown && by.isKnown === undefined) return UNPLACED;
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

/** What the log has that says as much as an entry: one of a wider scope, or the same one. */
async function covered(tx: WriteTx, entry: RevocationEntry): Promise<LoggedRevocation | undefined> {
  const logged = await findRevocations(tx, entry);
  return logged.find((one) => one.entry.scope === "chain") ?? logged.find((one) => covers(one.entry, entry));
}

function covers(one: RevocationEntry, other: RevocationEntry): boolean {
  return one.scope === other.scope || one.scope === "chain";
}

function decision({ revocationId, revokedBy }: RevocationEntry, caller: string) {
  return { kind: "revoke", caller, principal: revokedBy, blocks: [revocationId] } as const;
}
