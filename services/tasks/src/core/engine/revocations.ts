import type { Timers } from "@depute/core";
import { type Logger, ownHeaders, StreamFollower, type WorkLease } from "@depute/service";
import type { Dependencies } from "../dependencies.ts";
import { advance } from "../rules/advance.ts";
import { revokedStep } from "../rules/revoke.ts";
import { isTerminal } from "../rules/state-machine.ts";
import { cursorOf } from "../store/cursor-rows.ts";
import { tasksUnderBlock } from "../store/delegation-rows.ts";
import type { Engine } from "./engine.ts";

/** The last position that the follower has processed in the log of revocations. */
const CURSOR = cursorOf("revocations");

/** Maximum number of tasks that one transaction ends. */
const BATCH = 100;

export interface RevocationFollowerOptions {
  readonly engine: Engine;
  readonly revocations: Dependencies["revocations"];
  readonly timers: Timers;
  readonly log: Logger;
  readonly lease: WorkLease | undefined;
}

/**
 * Ends tasks whose authority was revoked. The follower reads the log of revocations from the stored position. One
 * transaction ends the last task under a block and stores the new position, so the follower misses no task.
 */
export class RevocationFollower {
  readonly #engine: Engine;
  readonly #revocations: Dependencies["revocations"];
  readonly #follower: StreamFollower;

  constructor({ engine, revocations, timers, log, lease }: RevocationFollowerOptions) {
    this.#engine = engine;
    this.#revocations = revocations;
    const follow = (signal: AbortSignal, onChange: () => void) => this.#follow(signal, onChange);
    this.#follower = new StreamFollower({ streamName: "revocations", follow, timers, log, lease });
  }

  start(): void {
    this.#follower.start();
  }

  close(): Promise<void> {
    return this.#follower.close();
  }

  async #follow(signal: AbortSignal, onChange: () => void): Promise<void> {
    const afterSequence = BigInt(await this.#engine.store.read((tx) => CURSOR.read(tx)));
    const options = { signal, headers: ownHeaders("") };
    for await (const { revocation } of this.#revocations.watchRevocations({ afterSequence }, options)) {
      onChange();
      const revocationId = revocation?.entry?.revocationId ?? "";
      if (revocation !== undefined) await this.#apply(revocationId, Number(revocation.sequence));
    }
  }

  async #apply(revocationId: string, sequence: number): Promise<void> {
    for (let more = true; more; ) {
      more = await this.#engine.store.write(async (tx) => {
        const taskIds = await tasksUnderBlock(tx, revocationId, BATCH);
        for (const taskId of taskIds) {
          await this.#engine.changeWithin(tx, taskId, (before, nowMs) =>
            // In this same change, a passed time limit may already have ended the task.
            isTerminal(before.task.status)
              ? { record: before, events: [] }
              : advance(before, revokedStep("the authority of the task was revoked"), nowMs),
          );
        }
        if (taskIds.length === BATCH) return true;
        await CURSOR.advance(tx, sequence);
        return false;
      });
    }
  }
}
