import { create } from "@bufbuild/protobuf";
import { TaskCancelRequestSchema } from "@depute/contracts/nekte/v1/nekte_pb";
import type { Clock, Timers } from "@depute/core";
import type { Logger } from "@depute/service";
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

export interface FarewellsOptions {
  readonly store: TaskStore;
  readonly peerAt: PeerAt;
  readonly clock: Clock;
  readonly timers: Timers;
  readonly log: Logger;
}

/** Tells endpoints that work is called off there, again until they have taken it. */
export class Farewells {
  readonly #options: FarewellsOptions;
  readonly #closing = new AbortController();
  #cancelLook = () => {};
  #working: Promise<void> | undefined;
  #again = false;
  /** When the next try is due, epoch milliseconds. */
  #nextMs = 0;

  constructor(options: FarewellsOptions) {
    this.#options = options;
  }

  wake(): void {
    if (this.#closing.signal.aborted) return;
    this.#cancelLook();
    if (this.#working !== undefined) {
      this.#again = true;
      return;
    }
    this.#working = this.#work().finally(() => {
      this.#working = undefined;
      if (this.#again) return this.wake();
      if (this.#closing.signal.aborted) return;
      const waitMs = Math.min(Math.max(this.#nextMs - this.#options.clock.now(), 0), LOOK_MS);
      this.#cancelLook = this.#options.timers.after(waitMs, () => this.wake());
    });
  }

  async close(): Promise<void> {
    this.#closing.abort();
    this.#cancelLook();
    await this.#working;
  }

  async #work(): Promise<void> {
    const { store, clock, log } = this.#options;
    this.#again = false;
    this.#nextMs = Number.POSITIVE_INFINITY;
    try {
      for (;;) {
        const due = await store.read((tx) => dueCancels(tx, clock.now(), BATCH));
        await Promise.all(due.map((owed) => this.#tell(owed)));
        if (due.length === BATCH && !this.#closing.signal.aborted) continue;
        this.#nextMs = (await store.read(nextCancelMs)) ?? Number.POSITIVE_INFINITY;
        return;
      }
    } catch (err) {
      if (!this.#closing.signal.aborted) log.error({ err }, "endpoints could not be told of cancellations");
    }
  }

  async #tell({ remoteId, endpoint, reason, tries }: OwedCancel): Promise<void> {
    const { store, peerAt, clock, log } = this.#options;
    const { signal } = this.#closing;
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
