import { type Client, createClient, type Transport } from "@connectrpc/connect";
import { LogService } from "@depute/contracts/depute/verifier/v1/log_service_pb";
import type { Clock, Timers } from "@depute/core";
import type { CryptoEngine } from "@depute/dct";
import { isRooted } from "@depute/dct/transparency";
import { DeadlineLoop, type Logger, Outbox, ownHeaders, type WorkLease } from "@depute/service";
import type { Store } from "@depute/store";
import { readUnloggedSeals, type SealRow, sealPastDay, setSealLogged } from "./store/audit-seal-rows.ts";

/** Milliseconds between two checks whether the open day has ended. */
const EVERY_MS = 60_000;

export interface AuditSealerOptions {
  readonly engine: Pick<CryptoEngine, "sha256">;
  readonly store: Store;
  readonly verifier: Transport;
  readonly clock: Clock;
  readonly timers: Timers;
  readonly log: Logger;
  /** The lease of the replica that seals; undefined without replicas. */
  readonly lease?: WorkLease | undefined;
}

/**
 * Seals each day of the audit log after its end. The verifier appends the seal to the transparency log. The first
 * record of a new day seals the day before. If no record arrives, the loop of this class seals the day.
 */
export class AuditSealer {
  readonly #options: AuditSealerOptions;
  readonly #verifier: Client<typeof LogService>;
  readonly #loop: DeadlineLoop;
  readonly #outbox: Outbox<SealRow>;

  constructor(options: AuditSealerOptions) {
    this.#options = options;
    const { store, clock, timers, log, lease } = options;
    this.#verifier = createClient(LogService, options.verifier);
    this.#loop = new DeadlineLoop({
      ...{
        clock,
        timers,
        log,
        failureMessage: "a day of the audit log cannot be sealed",
        maxWaitMs: EVERY_MS,
        lease,
      },
      runDueWork: () => this.seal(),
    });
    this.#outbox = new Outbox<SealRow>({
      ...{ timers, log, lease, failureMessage: "delivery of an audit seal to the transparency log failed" },
      first: (limit) => store.read((tx) => readUnloggedSeals(tx, limit)),
      tell: (seal, signal) => this.#append(seal, signal),
      // There is no row to delete: after `#append` has stored the seal's position in the transparency log, the seal
      // counts as delivered.
      drop: async () => {},
    });
  }

  start(): void {
    this.#loop.start(EVERY_MS);
    this.#outbox.start();
  }

  /** Starts the delivery of a new seal to the transparency log. */
  wake(): void {
    this.#outbox.wake();
  }

  async close(): Promise<void> {
    await Promise.all([this.#loop.close(), this.#outbox.close()]);
  }

  /** Seals the open day if it has ended. */
  async seal(): Promise<void> {
    const { store, clock, engine } = this.#options;
    await store.write(async (tx) => {
      await sealPastDay(tx, { sha256: engine.sha256, now: clock.now() });
      tx.afterCommit(() => this.#outbox.wake());
    });
  }

  async #append(seal: SealRow, signal: AbortSignal): Promise<void> {
    const { day, firstSequence, lastSequence, previousHead, head, rootHash = new Uint8Array() } = seal;
    const sequences = { firstSequence: BigInt(firstSequence), lastSequence: BigInt(lastSequence) };
    const request = { day, ...sequences, previousHead, head, rootHash };
    const { index, rootIndex } = await this.#verifier.appendAuditSeal(request, {
      headers: ownHeaders(""),
      signal,
    });
    const positions = { index: Number(index), rootIndex: rootIndex === undefined ? null : Number(rootIndex) };
    await this.#options.store.write((tx) => setSealLogged(tx, day, positions));
    // A verifier of the earlier version returns no `rootIndex`, for example during an upgrade. After this error, the
    // outbox repeats the call later.
    if (isRooted(seal) && rootIndex === undefined)
      throw new Error("the verifier service is of a version without roots of audit seals; upgrade it");
  }
}
