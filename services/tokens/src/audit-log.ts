import { ALL_KEYS, type Bus } from "@depute/bus";
import type { Clock, Timers } from "@depute/core";
import type { CryptoEngine } from "@depute/dct";
import { BatchedWrites, type CurrentCall, currentCall, type Logger } from "@depute/service";
import type { Store, WriteTx } from "@depute/store";
import type { AuditedCall, AuditedDecision, Decision } from "./rules/audit-record.ts";
import { appendDecisions, insertBatch } from "./store/audit-rows.ts";

/** The topic of wake-ups about new records of the audit log. */
export const AUDIT_TOPIC = "tokens.audit";

/** Maximum number of decisions that one transaction writes. */
const BATCH = 1024;
/** Maximum number of decisions that wait in memory for a write, for example while the store is unavailable. */
const MAX_WAITING = 100_000;

/** The name of this service as the `source` of its records. */
const OWN_SOURCE = "tokens";

interface AuditOptions {
  engine: Pick<CryptoEngine, "sha256">;
  store: Store;
  bus: Pick<Bus, "publish">;
  clock: Clock;
  timers: Timers;
  log: Logger;
  maxWaiting?: number;
  /**
   * Called with each decision of this service. If the decision belongs to a change, the call follows when the change is
   * durable.
   */
  onDecision?: (decision: Decision) => void;
  /** Called when a seal is durable. */
  onSealed?: () => void;
}

/**
 * The append-only record of every decision on authority. A change and its decisions commit in one transaction. A
 * verification changes nothing, so it does not wait for a write: its decision joins a batch that is durable within a
 * second. While MAX_WAITING decisions wait for a write, the service makes no further decision.
 */
export class AuditLog {
  readonly #options: AuditOptions;
  readonly #batches: BatchedWrites<AuditedDecision>;

  constructor(options: AuditOptions) {
    this.#options = options;
    const { store, timers, log, maxWaiting = MAX_WAITING } = options;
    this.#batches = new BatchedWrites<AuditedDecision>({
      write: (decisions) => store.write((tx) => this.#append(tx, decisions)),
      ...{ batch: BATCH, maxWaiting, limitName: "audit_waiting", itemsName: "decisions", timers, log },
    });
  }

  /** Records a decision within the transaction of its change. */
  async write(tx: WriteTx, decision: Decision): Promise<void> {
    tx.afterCommit(() => this.#options.onDecision?.(decision));
    await this.#append(tx, [this.#inCall(decision)]);
  }

  /**
   * Records the decisions of another service. A batch with a known id changes nothing.
   *
   * @param source the name of the service
   * @param batchId the batch's id, unique among the batches of this service
   */
  async record(source: string, batchId: string, decisions: readonly AuditedDecision[]): Promise<void> {
    const { store, clock } = this.#options;
    await store.write(async (tx) => {
      if (await insertBatch(tx, { source, batchId, time: clock.now() })) await this.#append(tx, decisions);
    });
  }

  /**
   * Requires that fewer than `maxWaiting` decisions wait for a write. Call this method before each decision.
   *
   * @throws DeputeError LIMIT_EXCEEDED
   */
  assertRoom(): void {
    this.#batches.assertRoom();
  }

  /** Records a decision that belongs to no change, such as a verification. The record is durable within a second. */
  add(decision: Decision): void {
    this.#options.onDecision?.(decision);
    this.#batches.add(this.#inCall(decision));
  }

  /** Writes the decisions that are still in memory, and stops the batches. */
  close(): Promise<void> {
    return this.#batches.close();
  }

  /** Returns a decision together with the current time and the current call. */
  #inCall({ resource = "", ...decision }: Decision): AuditedDecision {
    const time = this.#options.clock.now();
    return { ...decision, time, source: OWN_SOURCE, call: toAuditedCall(currentCall(), resource) };
  }

  async #append(tx: WriteTx, decisions: readonly AuditedDecision[]): Promise<void> {
    const { engine, bus, clock, onSealed } = this.#options;
    const isSealed = await appendDecisions(tx, decisions, { sha256: engine.sha256, now: clock.now() });
    tx.afterCommit(() => {
      bus.publish(AUDIT_TOPIC, ALL_KEYS);
      if (isSealed) onSealed?.();
    });
  }
}

/**
 * Returns the members of a call for the audit log, without `caller` and without empty members.
 *
 * @param current undefined for work without a call
 * @param resource the record that the decision is about; empty if the call itself names it
 */
function toAuditedCall(current: CurrentCall | undefined, resource: string): AuditedCall {
  const audited: Record<string, string> = {};
  for (const [name, value] of Object.entries(current ?? {})) {
    if (name !== "caller" && value !== "") audited[name] = value;
  }
  if (resource !== "") audited.resource = resource;
  return audited;
}
