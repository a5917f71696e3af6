import type { Bus } from "@depute/bus";
import type { Clock, Timers } from "@depute/core";
import { type CryptoEngine, createRevocation } from "@depute/dct";
import type { Logger, WorkLease } from "@depute/service";
import type { ReadTx, Store, WriteTx } from "@depute/store";
import type { AuditLog } from "./audit-log.ts";
import { BackgroundWork } from "./background.ts";
import type { DelegationLog } from "./delegation-log.ts";
import type { KnownKeys } from "./known-keys.ts";
import type { PendingPool } from "./pending-pool.ts";
import type { RevocationLog } from "./revocation-log.ts";
import { REVOCATIONS_TOPIC } from "./revocation-reader.ts";
import type { RevocationState } from "./revocation-state.ts";
import type { RootKeys } from "./root-keys.ts";
import { type KeyStatement, keptBefore, statementId } from "./rules/key-revocation.ts";
import { blocksSignedBefore, blocksSignedSince, mayRevokeRecorded } from "./store/block-rows.ts";
import { beginSweep, firstSweep, moveSweep } from "./store/key-rows.ts";
import { findPendingStatements, settledStatements, settlePending } from "./store/pending-rows.ts";
import { appendKeyRevocation, findKeyRevocations, type LogPlace } from "./store/revocation-rows.ts";

/** Maximum number of blocks of a revoked key that one transaction revokes. */
const BATCH = 100;

interface KeyRevokerOptions {
  engine: CryptoEngine;
  store: Store;
  bus: Bus;
  clock: Clock;
  timers: Timers;
  log: Logger;
  /** The platform's root keys. */
  roots: Pick<RootKeys, "isOwn" | "signers">;
  state: RevocationState;
  audit: AuditLog;
  revocations: RevocationLog;
  delegations: DelegationLog;
  knownKeys: Pick<KnownKeys, "isRecorded" | "isNamed">;
  pool: PendingPool;
  /** Resolves when the checkpoint file durably covers the log up to a sequence. */
  saved: (sequence: number) => Promise<void>;
  /** The lease of the replica that continues unfinished work; undefined without replicas. */
  lease?: WorkLease | undefined;
}

/**
 * Revokes keys (DelegateOS 13.3). After the revocation, the key's signatures are invalid, except on blocks that the
 * statement keeps valid. The class also logs an entry for each recorded block that the platform's root may revoke.
 * Other platforms learn of the revocation from these entries.
 */
export class KeyRevoker {
  readonly #options: KeyRevokerOptions;
  readonly #work: BackgroundWork;

  constructor(options: KeyRevokerOptions) {
    this.#options = options;
    this.#work = new BackgroundWork(options, "the blocks of a revoked key cannot be revoked", () =>
      this.#sweep(),
    );
  }

  /** Continues work that an earlier process did not finish. */
  start(): void {
    const { lease } = this.#options;
    if (lease !== undefined) this.#work.takeOver(lease);
    this.#work.wake();
  }

  async close(): Promise<void> {
    await this.#work.close();
  }

  /**
   * Durably records a key revocation with a valid signature. If the log already has an equal or stricter revocation of
   * the key by this revoker, returns the place of that revocation.
   *
   * @returns undefined if the revocation waits in the pool: the key revokes itself, and no block, setting, agent's card
   * or credential contains the key. Any party can generate such keys, and the log is permanent. A waiting revocation is
   * in force.
   * @throws DeputeError LIMIT_EXCEEDED if the pool has no room; DEPENDENCY_UNAVAILABLE if the checkpoint file cannot be
   * written
   */
  async record(statement: KeyStatement, caller: string): Promise<LogPlace | undefined> {
    const { store, roots, knownKeys, saved } = this.#options;
    const mayLog = async (tx: ReadTx) =>
      roots.isOwn(statement.revokedBy) || (await knownKeys.isRecorded(tx, statement.key));
    let place = await store.write(async (tx) =>
      (await mayLog(tx)) ? this.#append(tx, statement, caller) : undefined,
    );
    if (place === undefined && (await knownKeys.isNamed(statement.key))) {
      place = await store.write((tx) => this.#append(tx, statement, caller));
    }
    if (place === undefined) await store.write((tx) => this.#wait(tx, statement, caller));
    else await saved(place.sequence);
    return place;
  }

  /** Logs pending revocations of keys that are now in recorded blocks. Returns the number of these revocations. */
  async promote(limit: number): Promise<number> {
    const { store, clock } = this.#options;
    const waiting = await store.read((tx) => settledStatements(tx, clock.now(), limit));
    for (const statement of waiting) await store.write((tx) => this.#append(tx, statement, ""));
    return waiting.length;
  }

  async #append(tx: WriteTx, statement: KeyStatement, caller: string): Promise<LogPlace> {
    const { engine, bus, clock, state, audit } = this.#options;
    const { key, revokedBy } = statement;
    const from = keptBefore(statement) ?? 0;
    const id = statementId(engine, statement);
    const logged = (await findKeyRevocations(tx, key)).find((place) => {
      return place.key?.revokedBy === revokedBy && (keptBefore(place.key) ?? 0) <= from;
    });
    await settlePending(tx, { revocationId: id, revokedBy });
    if (logged !== undefined) return logged;
    const place = await appendKeyRevocation(tx, engine, statement, id, clock.now());
    const keptBlocks = await blocksSignedBefore(tx, key, from);
    await beginSweep(tx, place.sequence);
    await audit.write(tx, {
      ...{ kind: "revoke", caller, principal: revokedBy, decision: "allowed", reason: "key", blocks: [] },
    });
    tx.afterCommit(() => {
      state.addKey(place, { key, keepBefore: from, keptBlocks });
      state.dropPendingKey(key);
      bus.publish(REVOCATIONS_TOPIC, key);
      this.#work.wake();
    });
    return place;
  }

  async #wait(tx: WriteTx, statement: KeyStatement, caller: string): Promise<void> {
    const { engine, bus, clock, state, audit, pool } = this.#options;
    const { key } = statement;
    // One pending revocation suffices, because it covers every recorded block of the key.
    if ((await findPendingStatements(tx, key, clock.now())).length > 0) return;
    await pool.add(tx, statementId(engine, statement), { statement }, { caller, isKnown: false });
    await audit.write(tx, {
      ...{ kind: "revoke", caller, principal: key, decision: "allowed", reason: "pending", blocks: [] },
    });
    tx.afterCommit(() => {
      state.addPendingKey(key);
      bus.publish(REVOCATIONS_TOPIC, key);
    });
  }

  async #sweep(): Promise<boolean> {
    const { store, clock } = this.#options;
    return store.write(async (tx) => {
      const sweep = await firstSweep(tx);
      if (sweep === undefined) return false;
      const { sequence, key, keepBefore, afterBlock: after } = sweep;
      const since = keptBefore({ keepBefore } as KeyStatement) ?? 0;
      const ids = await blocksSignedSince(tx, key, { since, now: clock.now(), after, limit: BATCH });
      for (const id of ids) await this.#revoke(tx, id);
      await moveSweep(tx, sequence, ids.length === BATCH ? ids.at(-1) : undefined);
      return true;
    });
  }

  async #revoke(tx: WriteTx, id: string): Promise<void> {
    const { engine, clock, roots, revocations, delegations } = this.#options;
    for (const root of roots.signers()) {
      if (!(await mayRevokeRecorded(tx, id, root.principal.id))) continue;
      await revocations.recordWithin(tx, createRevocation(engine, id, "chain", root, clock.now()), "");
      return;
    }
    await delegations.revoke(tx, { revocationId: id, scope: "chain" });
  }
}
