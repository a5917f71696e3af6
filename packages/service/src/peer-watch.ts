import { createClient, type Transport } from "@connectrpc/connect";
import {
  Health,
  HealthCheckResponse_ServingStatus as Status,
} from "@depute/contracts/grpc/health/v1/health_pb";
import { pause, type Timers } from "@depute/core";
import { ownHeaders } from "./call-headers.ts";

/** Milliseconds between the end of one health watch and the start of the next. */
const RETRY_MS = 250;

export interface PeerWatchOptions {
  /** The transports to the peer's replicas. The watch checks the health of all services at each replica's address. */
  readonly transports: readonly Transport[];
  readonly timers: Timers;
  /**
   * Receives whether at least one replica of the peer serves, also if this has not changed. A replica that does not
   * answer counts as not serving.
   */
  readonly onServing: (serves: boolean) => void;
}

/**
 * Follows the health of another service by the gRPC Health Checking Protocol: the service counts as serving if one of
 * its replicas serves.
 */
export class PeerWatch {
  readonly #options: PeerWatchOptions;
  readonly #closing = new AbortController();
  /** The transports to the replicas that serve now. */
  readonly #serving = new Set<Transport>();
  #done: Promise<unknown> = Promise.resolve();

  constructor(options: PeerWatchOptions) {
    this.#options = options;
  }

  start(): void {
    this.#options.onServing(false);
    this.#done = Promise.all(this.#options.transports.map((transport) => this.#follow(transport)));
  }

  async close(): Promise<void> {
    this.#closing.abort();
    await this.#done;
  }

  /** Follows a replica's health until the watch is closed. The promise never rejects. */
  async #follow(transport: Transport): Promise<void> {
    const { timers } = this.#options;
    const { signal } = this.#closing;
    const health = createClient(Health, transport);
    while (!signal.aborted) {
      try {
        for await (const { status } of health.watch({}, { signal, headers: ownHeaders("") })) {
          this.#set(transport, status === Status.SERVING);
        }
      } catch {
        // A replica that does not answer counts as not serving, whatever the error is.
      }
      if (signal.aborted) return;
      this.#set(transport, false);
      await pause(RETRY_MS, timers, signal);
    }
  }

  #set(transport: Transport, serves: boolean): void {
    if (serves) this.#serving.add(transport);
    else this.#serving.delete(transport);
    this.#options.onServing(this.#serving.size > 0);
  }
}
