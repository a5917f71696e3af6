import { createClient, type Transport } from "@connectrpc/connect";
import {
  Health,
  HealthCheckResponse_ServingStatus as Status,
} from "@depute/contracts/grpc/health/v1/health_pb";
import type { Timers } from "@depute/core";
import { ownHeaders } from "./calls.ts";
import { pause } from "./stream-follower.ts";

/** Milliseconds before a peer that did not answer is asked again. */
const RETRY_MS = 1_000;

export interface PeerWatchOptions {
  /** The transport to the peer. The health check concerns the peer's whole process. */
  readonly transport: Transport;
  readonly timers: Timers;
  /** Receives the peer's answer, or `false` when the peer does not answer. */
  readonly onServing: (serves: boolean) => void;
}

/** Follows the health of another process by the gRPC Health Checking Protocol. */
export class PeerWatch {
  readonly #options: PeerWatchOptions;
  readonly #closing = new AbortController();
  #done: Promise<void> = Promise.resolve();

  constructor(options: PeerWatchOptions) {
    this.#options = options;
  }

  start(): void {
    this.#options.onServing(false);
    this.#done = this.#run();
  }

  async close(): Promise<void> {
    this.#closing.abort();
    await this.#done;
  }

  /** Checks the peer's health until the watch is closed. The promise never rejects. */
  async #run(): Promise<void> {
    const { transport, timers, onServing } = this.#options;
    const { signal } = this.#closing;
    const health = createClient(Health, transport);
    while (!signal.aborted) {
      try {
        for await (const { status } of health.watch({}, { signal, headers: ownHeaders("") })) {
          onServing(status === Status.SERVING);
        }
      } catch {
        // The peer did not answer. A silent peer counts as not serving, for any reason of the silence.
      }
      if (signal.aborted) return;
      onServing(false);
      await pause(RETRY_MS, timers, signal);
    }
  }
}
