import { create } from "@bufbuild/protobuf";
import { TaskCancelRequestSchema } from "@depute/contracts/nekte/v1/nekte_pb";
import type { Clock, Timers } from "@depute/core";
import { DeadlineLoop, type Logger, type WorkLease } from "@depute/service";
import type { TaskStore } from "../../core/index.ts";
import type { A2aPeerAt } from "../peers/a2a-peers.ts";
import type { PeerAt } from "../peers/peers.ts";
import { readA2aState } from "../rules/a2a-state.ts";
import { type A2aAddress, readA2aAddress } from "../rules/agent-address.ts";
import { PeerFault, UNREACHABLE } from "../rules/refusal.ts";
import {
  deleteRemote,
  dueCancels,
  nextCancelMs,
  type OwedCancel,
  postponeCancel,
} from "../store/remote-rows.ts";

/** Maximum number of concurrent calls. */
const BATCH = 16;
/** Milliseconds before the second attempt. Each further wait is twice as long, up to LONGEST_WAIT_MS. */
const FIRST_WAIT_MS = 1000;
const LONGEST_WAIT_MS = 600_000;
/**
 * Maximum number of attempts, over about two and a half hours. After that, only the endpoint's own timeout can end the
 * work.
 */
const MAX_TRIES = 24;
/** Maximum milliseconds between two reads of the store, for cancellations whose wake-up is lost. */
const LOOK_MS = 5000;

export interface CancellationsOptions {
  readonly store: TaskStore;
  readonly peerAt: PeerAt;
  readonly a2aPeerAt: A2aPeerAt;
  readonly clock: Clock;
  readonly timers: Timers;
  readonly log: Logger;
  readonly lease?: WorkLease | undefined;
}

/** Cancels tasks at endpoints. Repeats a call that fails temporarily, up to MAX_TRIES attempts in all. */
export class Cancellations {
  readonly #options: CancellationsOptions;
  readonly #loop: DeadlineLoop;

  constructor(options: CancellationsOptions) {
    this.#options = options;
    const { clock, timers, log, lease } = options;
    this.#loop = new DeadlineLoop({
      clock,
      timers,
      log,
      lease,
      failureMessage: "cancellations did not reach their endpoints",
      maxWaitMs: LOOK_MS,
      runDueWork: (signal) => this.#look(signal),
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
      await Promise.all(due.map((cancellation) => this.#cancelAt(cancellation, signal)));
      more = due.length === BATCH;
    }
    return store.read(nextCancelMs);
  }

  async #cancelAt(cancellation: OwedCancel, signal: AbortSignal): Promise<void> {
    const { remoteId, endpoint, tries } = cancellation;
    const { store, clock, log } = this.#options;
    try {
      const address = readA2aAddress(endpoint);
      if (address === undefined) await this.#cancelAtNekte(cancellation, signal);
      else await this.#cancelAtA2a(address, cancellation, signal);
    } catch (thrown) {
      if (signal.aborted) return;
      const mayPass = !(thrown instanceof PeerFault) || thrown.reason === UNREACHABLE.reason;
      if (mayPass && tries + 1 < MAX_TRIES) {
        const waitMs = Math.min(FIRST_WAIT_MS * 2 ** tries, LONGEST_WAIT_MS);
        await store.write((tx) => postponeCancel(tx, remoteId, clock.now() + waitMs));
        return;
      }
      // No attempt is left, or a retry cannot succeed: the endpoint's work has ended or is unknown, or the endpoint
      // does not support the call.
      log.debug({ err: thrown, task: remoteId }, "an endpoint did not accept a cancellation");
    }
    await store.write((tx) => deleteRemote(tx, remoteId));
  }

  async #cancelAtNekte({ remoteId, endpoint, reason }: OwedCancel, signal: AbortSignal): Promise<void> {
    const peer = await this.#options.peerAt(endpoint);
    try {
      const request = { taskId: remoteId, ...(reason === "" ? {} : { reason: reason.slice(0, 1024) }) };
      await peer.cancel(create(TaskCancelRequestSchema, request), signal);
    } finally {
      peer.close();
    }
  }

  async #cancelAtA2a(address: A2aAddress, { peerState }: OwedCancel, signal: AbortSignal): Promise<void> {
    const state = readA2aState(peerState);
    // The agent has sent no task id, so the platform cannot cancel the task.
    if (state === undefined) return;
    const peer = await this.#options.a2aPeerAt(address);
    try {
      await peer.cancel(state.taskId, signal);
    } finally {
      peer.close();
    }
  }
}
