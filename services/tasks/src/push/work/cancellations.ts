import { create } from "@bufbuild/protobuf";
import { TaskCancelRequestSchema } from "@depute/contracts/nekte/v1/nekte_pb";
import type { Clock, Timers } from "@depute/core";
import { DeadlineLoop, type Logger } from "@depute/service";
import type { TaskStore } from "../../core/index.ts";
import type { PeerAt } from "../peers/peers.ts";
import { PeerFault, UNREACHABLE } from "../rules/refusal.ts";
import {
  deleteRemote,
  dueCancels,
  nextCancelMs,
  type OwedCancel,
  postponeCancel,
} from "../store/remote-rows.ts";

/** Endpoints that are told at once. */
const BATCH = 16;
/** Milliseconds until the second try; each wait is twice the one before. */
const FIRST_WAIT_MS = 1000;
const LONGEST_WAIT_MS = 600_000;
/** An endpoint that was away for this many tries, some three hours, has its own time limit for the work. */
const MAX_TRIES = 24;
/** Milliseconds between looks when nothing wakes. */
const LOOK_MS = 5000;

export interface CancellationsOptions {
  readonly store: TaskStore;
  readonly peerAt: PeerAt;
  readonly clock: Clock;
  readonly timers: Timers;
  readonly log: Logger;
}

/** Tells endpoints that work is called off there, again until they have taken it. */
export class Cancellations {
  readonly #options: CancellationsOptions;
  readonly #loop: DeadlineLoop;

  constructor(options: CancellationsOptions) {
    this.#options = options;
    const { clock, timers, log } = options;
    this.#loop = new DeadlineLoop({
      clock,
      timers,
      log,
      what: "endpoints could not be told of cancellations",
      maxWaitMs: LOOK_MS,
      look: (signal) => this.#look(signal),
    });
  }

  wake(): void {
    this.#loop.wake();
  }

  close(): Promise<void> {
    return this.#loop.close();
  }

  async #look(signal: AbortSignal): Promise<number | undefined> {
    const { store, clock } = this.#options;
    for (let more = true; more && !signal.aborted; ) {
      const due = await store.read((tx) => dueCancels(tx, clock.now(), BATCH));
      await Promise.all(due.map((owed) => this.#tell(owed, signal)));
      more = due.length === BATCH;
    }
    return store.read(nextCancelMs);
  }

  async #tell({ remoteId, endpoint, reason, tries }: OwedCancel, signal: AbortSignal): Promise<void> {
    const { store, peerAt, clock, log } = this.#options;
    try {
      const peer = await peerAt(endpoint);
      try {
        const request = { taskId: remoteId, ...(reason === "" ? {} : { reason: reason.slice(0, 1024) }) };
        await peer.cancel(create(TaskCancelRequestSchema, request), signal);
      } finally {
        peer.close();
      }
    } catch (thrown) {
      if (signal.aborted) return;
      const mayPass = !(thrown instanceof PeerFault) || thrown.reason === UNREACHABLE.reason;
      if (mayPass && tries + 1 < MAX_TRIES) {
        const waitMs = Math.min(FIRST_WAIT_MS * 2 ** tries, LONGEST_WAIT_MS);
        await store.write((tx) => postponeCancel(tx, remoteId, clock.now() + waitMs));
        return;
      }
      // It has ended there, or was never known, or the endpoint does not know the call: there is nothing left to say.
      log.debug({ err: thrown, task: remoteId }, "a cancellation was not taken");
    }
    await store.write((tx) => deleteRemote(tx, remoteId));
  }
}
