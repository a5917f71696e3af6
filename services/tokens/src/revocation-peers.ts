import type { Bus } from "@depute/bus";
import { DeputeError, ErrorReason, type Timers } from "@depute/core";
import type { CryptoEngine, RevocationEntry } from "@depute/dct";
import { type Logger, pause } from "@depute/service";
import type { Store } from "@depute/store";
import { type Fetch, request } from "./outbound.ts";
import type { RevocationLog } from "./revocation-log.ts";
import { REVOCATIONS_TOPIC } from "./revocation-reader.ts";
import { pageAddress, pushOutcome, readForeignList, revokeNotification } from "./rules/peers.ts";
import { movePeerCursor, peerCursor } from "./store/peer-rows.ts";
import { readLog } from "./store/revocation-rows.ts";

const BATCH = 100;
/** Pages of one source that are read in one poll. */
const MAX_PAGES = 100;
/** Milliseconds until a peer that does not take an entry is tried again, doubled each time up to the longest. */
const FIRST_RETRY_MS = 1000;
const LONGEST_RETRY_MS = 10 * 60_000;

interface PeersOptions {
  engine: CryptoEngine;
  store: Store;
  bus: Bus;
  timers: Timers;
  log: Logger;
  revocations: RevocationLog;
  fetch: Fetch;
  /** JSON-RPC addresses that are told of every revocation. */
  peers: readonly string[];
  /** Revocation endpoints that are read. */
  sources: readonly string[];
  /** Milliseconds between two reads of a source. */
  pollMs: number;
}

/**
 * Exchanges revocations with other platforms (DelegateOS 4.3): tells configured peers, and reads configured endpoints.
 *
 * Nobody is believed: an entry counts by its signature and by the revoker's right, as one that is sent by a caller; one
 * for a block that is not known here waits until its chain is presented. Two platforms that tell each other come to
 * rest, since an entry that the log has is not logged again. A peer that is away is told when it is back.
 */
export class RevocationPeers {
  readonly #options: PeersOptions;
  readonly #stop = new AbortController();
  readonly #running: Promise<void>[] = [];
  #wakers = new Set<() => void>();
  #unsubscribe: (() => void) | undefined;

  constructor(options: PeersOptions) {
    this.#options = options;
  }

  start(): void {
    const { bus, peers, sources, pollMs } = this.#options;
    if (peers.length > 0) {
      this.#unsubscribe = bus.subscribe(REVOCATIONS_TOPIC, () => {
        for (const wake of this.#wakers) wake();
      });
    }
    for (const peer of peers) this.#running.push(this.#push(peer));
    for (const source of sources) this.#running.push(this.#poll(source, pollMs));
  }

  async close(): Promise<void> {
    this.#stop.abort();
    this.#unsubscribe?.();
    for (const wake of this.#wakers) wake();
    await Promise.all(this.#running);
  }

  /** Tells a peer everything that the log has, in its order, and then what comes. Never rejects. */
  async #push(peer: string): Promise<void> {
    const { log, pollMs } = this.#options;
    let retryMs = FIRST_RETRY_MS;
    while (!this.#stop.signal.aborted) {
      try {
        if (await this.#pushSome(peer)) continue;
        retryMs = FIRST_RETRY_MS;
        await this.#wait(pollMs, true);
      } catch (err) {
        if (this.#stop.signal.aborted) return;
        log.warn({ err, peer, retryMs }, "a peer cannot be told of revocations; trying again");
        await this.#wait(retryMs, false);
        retryMs = Math.min(2 * retryMs, LONGEST_RETRY_MS);
      }
    }
  }

  /** True while there is more. Throws when the peer does not take one now. */
  async #pushSome(peer: string): Promise<boolean> {
    const { store, fetch, log } = this.#options;
    const { signal } = this.#stop;
    const places = await store.read(async (tx) => readLog(tx, await peerCursor(tx, "push", peer), BATCH));
    let told: number | undefined;
    try {
      for (const { sequence, entry } of places) {
        if (signal.aborted) break;
        if (entry !== undefined) {
          const { status } = await request(fetch, peer, { body: revokeNotification(entry), signal });
          const outcome = pushOutcome(status);
          if (outcome === "later") throw new Error(`${peer} answered ${status}`);
          if (outcome === "refused")
            log.warn({ peer, status, sequence }, "a peer does not want a revocation");
        }
        told = sequence;
      }
    } finally {
      const upTo = told;
      if (upTo !== undefined) await store.write((tx) => movePeerCursor(tx, "push", peer, upTo));
    }
    return places.length === BATCH && !signal.aborted;
  }

  /** Reads a source again and again. Never rejects. */
  async #poll(source: string, pollMs: number): Promise<void> {
    while (!this.#stop.signal.aborted) {
      try {
        await this.#pollOnce(source);
      } catch (err) {
        if (this.#stop.signal.aborted) return;
        this.#options.log.warn({ err, source }, "revocations of a source cannot be read; trying again");
      }
      await this.#wait(pollMs, false);
    }
  }

  async #pollOnce(source: string): Promise<void> {
    const { engine, store, fetch, log } = this.#options;
    const { signal } = this.#stop;
    for (let page = 0; page < MAX_PAGES && !signal.aborted; page++) {
      const since = await store.read((tx) => peerCursor(tx, "poll", source));
      const { status, text } = await request(fetch, pageAddress(source, since), { signal });
      const list = status === 200 ? readForeignList(engine, text) : undefined;
      if (list === undefined) throw new Error(`${source} answered ${status} and no list of revocations`);
      if (list.refused > 0)
        log.warn({ source, entries: list.refused }, "a source lists what is no revocation");
      for (const entry of list.entries) await this.#take(entry, source);
      const { next } = list;
      // Without a cursor the list is whole; one that does not move has nothing more.
      if (next === undefined || next <= since) return;
      await store.write((tx) => movePeerCursor(tx, "poll", source, next));
    }
  }

  /** Throws what keeps the entry from being judged; then the page is read again. */
  async #take(entry: RevocationEntry, source: string): Promise<void> {
    try {
      await this.#options.revocations.record(entry, source, []);
    } catch (error) {
      const reason = error instanceof DeputeError ? error.reason : undefined;
      // Whoever cannot revoke a block, or has revoked too many, must not keep others' entries from being read.
      if (reason === ErrorReason.NOT_AUTHORIZED_TO_REVOKE || reason === ErrorReason.LIMIT_EXCEEDED) {
        const { revokedBy } = entry;
        this.#options.log.warn({ source, revokedBy, reason }, "a source's revocation was not taken");
      } else throw error;
    }
  }

  /** @param isWoken whether a new revocation ends it as well */
  async #wait(ms: number, isWoken: boolean): Promise<void> {
    let waker = () => {};
    await pause(ms, this.#options.timers, this.#stop.signal, (wake) => {
      waker = wake;
      if (isWoken) this.#wakers.add(wake);
    });
    this.#wakers.delete(waker);
  }
}
