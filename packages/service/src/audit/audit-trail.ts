import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { createClient, type Transport } from "@connectrpc/connect";
import type { Bus } from "@depute/bus";
import {
  AuditCredential,
  AuditDecision,
  type AuditRecord,
  AuditRecordSchema,
  AuditService,
  RecordAuditDecisionsRequestSchema,
} from "@depute/contracts/depute/tokens/v1/audit_service_pb";
import { type Clock, DeputeError, ErrorReason, randomUuid, type Timers, toTimestamp } from "@depute/core";
import type { Store } from "@depute/store";
import { BatchedWrites } from "../batched-writes.ts";
import { ownHeaders } from "../call-headers.ts";
import type { CredentialKind, CurrentCall } from "../call-origin.ts";
import { fromConnectError } from "../errors-on-wire.ts";
import type { Logger } from "../log.ts";
import type { ModuleName } from "../names.ts";
import { Outbox } from "../outbox.ts";
import { SharedWork } from "../shared-work.ts";
import { type BatchRow, countBatches, deleteBatch, firstBatches, insertBatch } from "./outbox-rows.ts";

/** Maximum number of decisions in one delivery. The contract has the same limit. */
const BATCH = 100;
/** Maximum number of decisions in one write. */
const WRITTEN_AT_ONCE = 10 * BATCH;
/** Maximum number of decisions that wait for the store. */
const MAX_WAITING = 10_000;
/** Maximum number of batches that wait for the tokens service. */
const MAX_UNDELIVERED = 10_000;

/** A decision on authority: whether a call was allowed or denied. */
export interface TrailDecision {
  readonly kind: "call" | "call_tool";
  readonly call: CurrentCall;
  /** The name of the record that the call is about; empty for none. */
  readonly resource: string;
  readonly decision: "allowed" | "denied";
  readonly reason: string;
  /** The revocation ids of the token's blocks, beginning with the authority block; empty without a verified token. */
  readonly blocks: readonly string[];
}

export interface AuditTrailOptions {
  /** The name of the service that makes the decisions. */
  readonly source: ModuleName;
  readonly store: Store;
  /** The tokens service, which stores the audit log. */
  readonly tokens: Transport;
  readonly clock: Clock;
  readonly timers: Timers;
  readonly log: Logger;
  /** The bus between the replicas of the service. Absent if the service has no replicas. */
  readonly bus?: Bus;
}

/**
 * Delivers the decisions of a service to the audit log of the tokens service, each at least once. The store has a
 * decision soon after `add`, before its delivery. While the trail is full, `assertRoom` throws, so that the service
 * makes no further decision.
 */
export class AuditTrail {
  readonly #options: AuditTrailOptions;
  readonly #batches: BatchedWrites<AuditRecord>;
  readonly #outbox: Outbox<BatchRow>;
  readonly #work: SharedWork | undefined;
  /**
   * The undelivered batches of all replicas at the last read of the store, less the batches delivered here since then.
   */
  #undelivered = 0;

  constructor(options: AuditTrailOptions) {
    this.#options = options;
    const { store, timers, log, tokens } = options;
    const client = createClient(AuditService, tokens);
    const { bus, clock, source } = options;
    this.#work = bus && new SharedWork({ service: `audit_${source}`, store, bus, clock, timers, log });
    this.#batches = new BatchedWrites<AuditRecord>({
      write: (decisions) => this.#write(decisions),
      ...{
        batch: WRITTEN_AT_ONCE,
        maxWaiting: MAX_WAITING,
        limitName: "audit_waiting",
        itemsName: "decisions",
      },
      ...{ timers, log },
    });
    this.#outbox = new Outbox<BatchRow>({
      ...{ timers, log, failureMessage: "delivery of decisions to the audit log failed" },
      lease: this.#work?.lease("decisions"),
      first: (limit) =>
        store.read(async (tx) => {
          this.#undelivered = await countBatches(tx);
          return firstBatches(tx, limit);
        }),
      tell: async ({ id, request }, signal) => {
        const message = fromBinary(RecordAuditDecisionsRequestSchema, request);
        try {
          await client.recordAuditDecisions(message, { headers: ownHeaders(""), signal });
        } catch (error) {
          if (fromConnectError(error).reason !== ErrorReason.INVALID_REQUEST) throw error;
          // A retry would get the same refusal, and the later batches would wait forever. So this batch counts as
          // delivered.
          log.error({ err: error, batch: id }, "the audit log refused decisions");
        }
      },
      drop: async ({ id }) => {
        await store.write((tx) => deleteBatch(tx, id));
        this.#undelivered = Math.max(0, this.#undelivered - 1);
      },
    });
  }

  async start(): Promise<void> {
    this.#undelivered = await this.#options.store.read(countBatches);
    this.#outbox.start();
  }

  /**
   * Requires that one more decision can be recorded. Call it before each decision.
   *
   * @throws DeputeError LIMIT_EXCEEDED (`audit_waiting`, `audit_undelivered`)
   */
  assertRoom(): void {
    this.#batches.assertRoom();
    if (this.#undelivered < MAX_UNDELIVERED) return;
    throw new DeputeError(
      ErrorReason.LIMIT_EXCEEDED,
      "the audit log does not accept decisions now; try again later",
      { metadata: { limit: "audit_undelivered", max: String(MAX_UNDELIVERED) } },
    );
  }

  /** Records a decision. Call `assertRoom` before the decision is made. */
  add(decision: TrailDecision): void {
    this.#batches.add(toRecord(decision, this.#options.clock.now()));
  }

  async close(): Promise<void> {
    await this.#batches.close();
    await this.#outbox.close();
    await this.#work?.close();
    await this.#options.store.close();
  }

  async #write(decisions: readonly AuditRecord[]): Promise<void> {
    const { store, clock, source } = this.#options;
    const rows: BatchRow[] = [];
    for (let from = 0; from < decisions.length; from += BATCH) {
      const batchId = randomUuid();
      const batch = { source, batchId, decisions: decisions.slice(from, from + BATCH) };
      const request = create(RecordAuditDecisionsRequestSchema, batch);
      rows.push({ id: batchId, request: toBinary(RecordAuditDecisionsRequestSchema, request) });
    }
    this.#undelivered = await store.write(async (tx) => {
      for (const row of rows) await insertBatch(tx, row, clock.now());
      return countBatches(tx);
    });
    this.#outbox.wake();
  }
}

const DECISIONS = { allowed: AuditDecision.ALLOWED, denied: AuditDecision.DENIED } as const;

const CREDENTIALS: Readonly<Record<CredentialKind | "", AuditCredential>> = {
  "": AuditCredential.UNSPECIFIED,
  none: AuditCredential.ANONYMOUS,
  secret: AuditCredential.SECRET,
  login_token: AuditCredential.LOGIN_TOKEN,
  certificate: AuditCredential.CERTIFICATE,
  holder_proof: AuditCredential.HOLDER_PROOF,
  delegation_token: AuditCredential.DELEGATION_TOKEN,
  message: AuditCredential.MESSAGE,
  service: AuditCredential.SERVICE,
};

/** Converts a decision to its contract message. */
function toRecord(
  { kind, call, resource, decision, reason, blocks }: TrailDecision,
  now: number,
): AuditRecord {
  const { credential, ...texts } = call;
  return create(AuditRecordSchema, {
    ...texts,
    ...{ kind, resource, reason, principal: call.caller, time: toTimestamp(now) },
    credential: CREDENTIALS[credential],
    decision: DECISIONS[decision],
    revocationIds: [...blocks],
  });
}
