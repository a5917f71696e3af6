import type { Bus } from "@depute/bus";
import { DeputeError, ErrorReason, pause, type Timers } from "@depute/core";
import type { CryptoEngine, RevocationEntry } from "@depute/dct";
import { type Logger, type SharedWork, type WorkLease, withTimeout } from "@depute/service";
import { LeaseLostError, type Store } from "@depute/store";
import { type Fetch, request } from "./outbound.ts";
import type { RevocationLog } from "./revocation-log.ts";
import { REVOCATIONS_TOPIC } from "./revocation-reader.ts";
import { pageAddress, pushOutcome, readForeignList, revokeNotification } from "./rules/peers.ts";
import { movePeerCursor, peerCursor } from "./store/peer-rows.ts";
import { readLog } from "./store/revocation-rows.ts";

const BATCH = 100;
/** Timeout of a request to another platform, in milliseconds. */
const TIMEOUT_MS = 10_000;
/** Maximum number of pages that one poll reads from a source. */
const MAX_PAGES = 100;
/**
 * Time until the first retry of a failed push, in milliseconds. The time doubles with each retry, up to
 * LONGEST_RETRY_MS.
 */
const FIRST_RETRY_MS = 1000;
const LONGEST_RETRY_MS = 10 * 60_000;
/** Milliseconds between two checks whether this process has the lease for a peer or source. */
const TAKEOVER_MS = 500;

interface PeersOptions {
  engine: CryptoEngine;
  store: Store;
  bus: Bus;
  timers: Timers;
  log: Logger;
  revocations: RevocationLog;
  fetch: Fetch;
  /** JSON-RPC addresses to which the service pushes every revocation. */
  peers: readonly string[];
  /** Addresses of the revocation endpoints of other platforms that the service polls. */
  sources: readonly string[];
  /**
   * Milliseconds between two polls of a source. Without a wake-up, also the time between two reads of the log for new
   * entries to push.
   */
  pollMs: number;
  /** The leases for peers and sources: one replica at a time serves each peer and each source. */
  work: Pick<SharedWork, "lease">;
}

/**
 * Exchanges revocations with other platforms (DelegateOS 4.3): pushes to configured peers, and polls configured
 * endpoints. Peers are not trusted: a peer's entry needs a valid signature and a rightful revoker, as a caller's entry
 * does. An entry for an unknown block waits for a chain that proves its revoker rightful. Two platforms that push to
 * each other do not loop, because neither logs an entry twice. A peer that was unavailable receives the missed entries
 * later.
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
    const { bus, peers, sources, pollMs, work } = this.#options;
    if (peers.length > 0) {
      this.#unsubscribe = bus.subscribe(REVOCATIONS_TOPIC, () => {
        for (const wake of this.#wakers) wake();
      });
    }
    for (const peer of peers) this.#running.push(this.#push(peer, work.lease(`push ${peer}`)));
    for (const source of sources)
      this.#running.push(this.#poll(source, pollMs, work.lease(`poll ${source}`)));
  }

  async close(): Promise<void> {
    this.#stop.abort();
    this.#unsubscribe?.();
    for (const wake of this.#wakers) wake();
    await Promise.all(this.#running);
  }

  /**
   * Pushes the log to a peer, in order, from the peer's cursor on, and then each new entry. The promise never rejects.
   */
  async #push(peer: string, lease: WorkLease | undefined): Promise<void> {
    const { log, pollMs } = this.#options;
    let retryMs = FIRST_RETRY_MS;
    while (!this.#stop.signal.aborted) {
      try {
        if (!(await this.#untilHeld(lease))) return;
        if (await this.#pushSome(peer, lease)) continue;
        retryMs = FIRST_RETRY_MS;
        await this.#wait(pollMs, true);
      } catch (err) {
        if (this.#stop.signal.aborted) return;
        if (err instanceof LeaseLostError) continue;
        log.warn({ err, peer, retryMs }, "the push of revocations to a peer failed; trying again");
        await this.#wait(retryMs, false);
        retryMs = Math.min(2 * retryMs, LONGEST_RETRY_MS);
      }
    }
  }

  /**
   * Pushes a batch of entries. Returns true if more may remain. Throws if the peer does not respond, or does not accept
   * entries at this time. Moves the cursor to the last pushed entry, also before it throws.
   */
  async #pushSome(peer: string, lease: WorkLease | undefined): Promise<boolean> {
    const { store, fetch, timers, log } = this.#options;
    const { signal } = this.#stop;
    const epoch = lease?.epoch ?? 0;
    const places = await store.read(async (tx) => readLog(tx, await peerCursor(tx, "push", peer), BATCH));
    let lastPushed: number | undefined;
    try {
      for (const { sequence, entry } of places) {
        if (signal.aborted || lease?.isHeld === false) break;
        if (entry !== undefined) {
          const { status } = await withTimeout(timers, TIMEOUT_MS, signal, (within) =>
            request(fetch, peer, { body: revokeNotification(entry), signal: within }),
          );
          const outcome = pushOutcome(status);
          if (outcome === "later") throw new Error(`${peer} answered ${status}`);
          if (outcome === "refused") log.warn({ peer, status, sequence }, "a peer refused a revocation");
        }
        lastPushed = sequence;
      }
    } finally {
      const upTo = lastPushed;
      if (upTo !== undefined)
        await store.write(async (tx) => {
          await lease?.requireHeld(tx, epoch);
          await movePeerCursor(tx, "push", peer, upTo);
        });
    }
    return places.length === BATCH && !signal.aborted;
  }

  /** Polls a source at intervals until the service stops. The promise never rejects. */
  async #poll(source: string, pollMs: number, lease: WorkLease | undefined): Promise<void> {
    while (!this.#stop.signal.aborted) {
      try {
        if (!(await this.#untilHeld(lease))) return;
        await this.#pollOnce(source, lease);
      } catch (err) {
        if (this.#stop.signal.aborted) return;
        if (err instanceof LeaseLostError) continue;
        this.#options.log.warn({ err, source }, "revocations of a source cannot be read; trying again");
      }
      await this.#wait(pollMs, false);
    }
  }

  async #pollOnce(source: string, lease: WorkLease | undefined): Promise<void> {
    const { engine, store, fetch, timers, log } = this.#options;
    const { signal } = this.#stop;
    const epoch = lease?.epoch ?? 0;
    for (let page = 0; page < MAX_PAGES && !signal.aborted && lease?.isHeld !== false; page++) {
      const since = await store.read((tx) => peerCursor(tx, "poll", source));
      const { status, text } = await withTimeout(timers, TIMEOUT_MS, signal, (within) =>
        request(fetch, pageAddress(source, since), { signal: within }),
      );
      const list = status === 200 ? readForeignList(engine, text) : undefined;
      if (list === undefined)
        throw new Error(`${source} answered with status ${status} and without a list of revocations`);
      if (list.refused > 0)
        log.warn({ source, entries: list.refused }, "a source lists malformed revocations");
      for (const entry of list.entries) await this.#take(entry, source);
      const { next } = list;
      // A list without a cursor is complete. If the cursor does not advance, the next request would return this page
      // again.
      if (next === undefined || next <= since) return;
      await store.write(async (tx) => {
        await lease?.requireHeld(tx, epoch);
        await movePeerCursor(tx, "poll", source, next);
      });
    }
  }

  /**
   * Records one entry of a source. Throws if the check of the entry fails for a temporary reason; the next poll then
   * reads the page again.
   */
  async #take(entry: RevocationEntry, source: string): Promise<void> {
    try {
      await this.#options.revocations.record(entry, source, []);
    } catch (error) {
      const reason = error instanceof DeputeError ? error.reason : undefined;
      // The revoker is not rightful, or a limit of revocations is reached. The poll continues with the next entry.
      if (reason === ErrorReason.NOT_AUTHORIZED_TO_REVOKE || reason === ErrorReason.LIMIT_EXCEEDED) {
        const { revokedBy } = entry;
        this.#options.log.warn({ source, revokedBy, reason }, "a revocation of a source was refused");
      } else throw error;
    }
  }

  /**
   * Waits until this process has the lease for a peer or source. Returns true when it has the lease, and false when the
   * service stops.
   */
  async #untilHeld(lease: WorkLease | undefined): Promise<boolean> {
    while (lease?.isHeld === false && !this.#stop.signal.aborted) await this.#wait(TAKEOVER_MS, false);
    return !this.#stop.signal.aborted;
  }

  /**
   * Waits for some milliseconds.
   *
   * @param isWoken if true, a new revocation ends the wait early
   */
  async #wait(ms: number, isWoken: boolean): Promise<void> {
    let waker = () => {};
    await pause(ms, this.#options.timers, this.#stop.signal, (wake) => {
      waker = wake;
      if (isWoken) this.#wakers.add(wake);
    });
    this.#wakers.delete(waker);
  }
}
