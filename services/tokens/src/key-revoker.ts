import type { Bus } from "@depute/bus";
import { type Clock, DeputeError, ErrorReason, type Timers } from "@depute/core";
import { type CryptoEngine, createRevocation, type Keypair } from "@depute/dct";
import type { Logger } from "@depute/service";
import type { Store, WriteTx } from "@depute/store";
import type { AuditLog } from "./audit-log.ts";
import { BackgroundWork } from "./background.ts";
import type { DelegationLog } from "./delegation-log.ts";
import type { RevocationLog } from "./revocation-log.ts";
import { REVOCATIONS_TOPIC } from "./revocation-reader.ts";
import type { RevocationState } from "./revocation-state.ts";
import { type KeyStatement, keptBefore, statementId } from "./rules/key-revocation.ts";
import {
  blocksSignedBefore,
  blocksSignedSince,
  isKnownPrincipal,
  mayRevokeRecorded,
} from "./store/block-rows.ts";
import { beginSweep, firstSweep, moveSweep } from "./store/key-rows.ts";
import { appendKeyRevocation, findKeyRevocations, type LogPlace } from "./store/revocation-rows.ts";

/** Blocks of a revoked key that are looked at in one transaction. */
const BATCH = 100;

interface KeyRevokerOptions {
  engine: CryptoEngine;
  store: Store;
  bus: Bus;
  clock: Clock;
  timers: Timers;
  log: Logger;
  /** The platform's root. */
  root: Keypair;
  state: RevocationState;
  audit: AuditLog;
  revocations: RevocationLog;
  delegations: DelegationLog;
}

/**
 * Revokes keys (DelegateOS 13.3).
 *
 * From the statement on no signature of the key counts, whoever knows of the block. So that those who follow the log
 * learn of it too, the recorded blocks of the key that the platform may revoke are then revoked one by one.
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

  /** Goes on with what a restart interrupted. */
  start(): void {
    this.#work.kick();
  }

  async close(): Promise<void> {
    await this.#work.close();
  }

  /**
   * Records a statement whose signature holds, durably. One that says no more than the log has is not written again.
   *
   * @throws DeputeError TOKEN_NOT_FOUND for a key that revokes itself and that no recorded block names: anybody can make
   *   keys, and the log keeps what it has
   */
  async record(statement: KeyStatement, caller: string): Promise<LogPlace> {
    const { engine, store, bus, clock, root, state, audit } = this.#options;
    const { key, revokedBy } = statement;
    const from = keptBefore(statement) ?? 0;
    return store.write(async (tx) => {
      const known = (await findKeyRevocations(tx, key)).find((place) => {
        return place.key?.revokedBy === revokedBy && (keptBefore(place.key) ?? 0) <= from;
      });
      if (known !== undefined) return known;
      if (revokedBy !== root.principal.id && !(await isKnownPrincipal(tx, key))) {
        throw new DeputeError(ErrorReason.TOKEN_NOT_FOUND, "no recorded block names this key", {
          metadata: { revocation_id: key },
        });
      }
      const place = await appendKeyRevocation(
        tx,
        engine,
        statement,
        statementId(engine, statement),
        clock.now(),
      );
      const kept = await blocksSignedBefore(tx, key, from);
      await beginSweep(tx, place.sequence);
      await audit.write(tx, {
        ...{ kind: "revoke", caller, principal: revokedBy, decision: "allowed", reason: "key", blocks: [] },
      });
      tx.afterCommit(() => {
        state.addKey(place, { key, keepBefore: from, kept });
        bus.publish(REVOCATIONS_TOPIC, key);
        this.#work.kick();
      });
      return place;
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
    const { engine, clock, root, revocations, delegations } = this.#options;
    if (await mayRevokeRecorded(tx, id, root.principal.id)) {
      await revocations.recordWithin(tx, createRevocation(engine, id, "chain", root, clock.now()), "");
    } else await delegations.revoke(tx, { revocationId: id, scope: "chain" });
  }
}
