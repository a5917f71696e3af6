import type { Bus } from "@depute/bus";
import { type Clock, DeputeError, ErrorReason } from "@depute/core";
import { type CryptoEngine, mayRevoke, type RevocationEntry } from "@depute/dct";
import type { Store, WriteTx } from "@depute/store";
import type { AuditLog } from "./audit-log.ts";
import type { DelegationLog } from "./delegation-log.ts";
import { REVOCATIONS_TOPIC } from "./revocation-reader.ts";
import type { RevocationState } from "./revocation-state.ts";
import type { Block } from "./rules/blocks.ts";
import { hasBlock, mayRevokeRecorded } from "./store/block-rows.ts";
import {
  appendRevocation,
  countPending,
  countSince,
  findPending,
  findRevocations,
  insertPending,
  type LoggedRevocation,
  settlePending,
} from "./store/revocation-rows.ts";

/** Entries of one revoker that may wait. */
const MAX_PENDING_OF_ONE = 1000;

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
  maxPending: number;
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
    return this.#options.store.write(async (tx) => {
      const known = await covered(tx, entry);
      if (known !== undefined) return known;
      if (mayRevoke(entry, chain) || (await mayRevokeRecorded(tx, entry.revocationId, entry.revokedBy))) {
        return this.#append(tx, entry, caller);
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
      await this.#wait(tx, entry, caller);
      return undefined;
    });
  }

  /** As record, for an entry by the root that signed a recorded block. */
  async recordOwn(entry: RevocationEntry, caller: string): Promise<LoggedRevocation> {
    return this.#options.store.write(async (tx) => {
      const known = await covered(tx, entry);
      if (known !== undefined) return known;
      if (!(await hasBlock(tx, entry.revocationId, entry.revokedBy))) {
        throw new DeputeError(ErrorReason.TOKEN_NOT_FOUND, "the platform signed no such block", {
          metadata: { revocation_id: entry.revocationId },
        });
      }
      return this.#append(tx, entry, caller);
    });
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
    const waiting = await findPending(tx, key);
    if (waiting.length === 0) return;
    await settlePending(tx, key);
    for (const { entry } of waiting) {
      if ((await covered(tx, entry)) === undefined) await this.#append(tx, entry, caller);
    }
    tx.afterCommit(() => this.#options.state.dropPending(key));
  }

  async #wait(tx: WriteTx, entry: RevocationEntry, caller: string): Promise<void> {
    const { bus, clock, state, audit, maxPending } = this.#options;
    const waiting = await findPending(tx, entry);
    if (waiting.some((one) => covers(one.entry, entry))) return;
    const { all, own } = await countPending(tx, entry.revokedBy);
    if (all >= maxPending || own >= MAX_PENDING_OF_ONE) {
      const max = all >= maxPending ? maxPending : MAX_PENDING_OF_ONE;
      throw new DeputeError(
        ErrorReason.LIMIT_EXCEEDED,
        "too many revocations wait; send a token that has the block",
        { metadata: { limit: "pending_revocations", max: String(max) } },
      );
    }
    await insertPending(tx, entry, clock.now());
    await audit.write(tx, { ...decision(entry, caller), decision: "allowed", reason: "pending" });
    tx.afterCommit(() => {
      state.addPending(entry);
      bus.publish(REVOCATIONS_TOPIC, entry.revocationId);
    });
  }
}

/** What the log has that says as much as an entry: the same one, or one of a wider scope. */
async function covered(tx: WriteTx, entry: RevocationEntry): Promise<LoggedRevocation | undefined> {
  const logged = await findRevocations(tx, entry);
  const same = logged.find((one) => one.entry.scope === entry.scope);
  return same ?? logged.find((one) => covers(one.entry, entry));
}

function covers(one: RevocationEntry, other: RevocationEntry): boolean {
  return one.scope === other.scope || one.scope === "chain";
}

function decision({ revocationId, revokedBy }: RevocationEntry, caller: string) {
  return { kind: "revoke", caller, principal: revokedBy, blocks: [revocationId] } as const;
}
