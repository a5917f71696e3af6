import { type Clock, DeputeError, ErrorReason, newId, requestIdReused } from "@depute/core";
import type { VerifiedBlock } from "@depute/dct";
import type { ReadTx, Store, WriteTx } from "@depute/store";
import type { AuditLog } from "./audit-log.ts";
import type { BlockRecords } from "./block-notes.ts";
import type { RevocationReader } from "./revocation-reader.ts";
import {
  budgetExceeded,
  type Level,
  MAX_OPEN_RESERVATIONS,
  nextReservation,
  type Outcome,
  remaining,
  SPEND_RETENTION_MS,
} from "./rules/spend.ts";
import {
  findByRequest,
  findReservation,
  forgetSpend,
  type HeldSpend,
  hold,
  insertReservation,
  readExpired,
  readSpend,
  type StoredReservation,
  settleReservation,
} from "./store/spend-rows.ts";
import type { TokenMeter } from "./token-metrics.ts";

/** Number of expired rows that each insert deletes. It is more than 1, so that the number of expired rows decreases. */
const FORGOTTEN_AT_ONCE = 4;
/** Milliseconds without a search for expired rows after a search that found no more of them. */
const NOTHING_DUE_MS = 1000;

/** The members of a verified block that the budget check reads. */
export type BudgetBlock = Pick<VerifiedBlock, "revocationId" | "maxBudgetMicrocents" | "expiresAt">;

/** The reservation that a caller requests, and the caller. */
export interface SpendRequest {
  readonly caller: string;
  /** The organization that owns the reservation; empty for none. */
  readonly organization: string;
  readonly requestId: string;
  readonly digest: string;
  /** The requested amount in microcents. */
  readonly amount: number;
  readonly lifetimeMs: number;
}

/** The budget of one block, its charged and its reserved amount, in microcents. */
export interface BudgetLevel {
  readonly revocationId: string;
  readonly limit: number;
  readonly reserved: number;
  readonly spent: number;
}

/** A reservation, and the remaining budget of its token. */
export interface Reserved {
  readonly reservation: StoredReservation;
  /** The remaining budget in microcents. */
  readonly remaining: number;
}

interface SpendLedgerOptions {
  store: Store;
  clock: Clock;
  audit: AuditLog;
  notes: BlockRecords;
  meter?: Pick<TokenMeter, "reserved" | "charged">;
  /** Reads the revocations that a transaction sees and this process has not read; undefined without replicas. */
  reader?: Pick<RevocationReader, "assertCurrent" | "decide"> | undefined;
}

/**
 * The spend under each block, including all blocks below it (DelegateOS 13.4). One transaction reserves an amount on
 * all blocks of a chain, or on none. Only a call that settles the reservation can release the amount. Without such a
 * call the amount counts in full, even after a crash or the reservation's expiry.
 */
export class SpendLedger {
  readonly #store: Store;
  readonly #clock: Clock;
  readonly #audit: AuditLog;
  readonly #notes: BlockRecords;

  readonly #reader: SpendLedgerOptions["reader"];

  readonly #meter: SpendLedgerOptions["meter"];

  /** The monotonic time from which inserts search for expired rows again, in milliseconds. */
  #forgetFrom = Number.NEGATIVE_INFINITY;

  constructor({ store, clock, audit, notes, meter, reader }: SpendLedgerOptions) {
    this.#reader = reader;
    this.#meter = meter;
    this.#notes = notes;
    this.#store = store;
    this.#clock = clock;
    this.#audit = audit;
  }

  /**
   * Returns the reservation of an earlier request with the same id and content; undefined for a new request.
   *
   * @throws DeputeError REQUEST_ID_REUSED
   */
  async recall({ caller, requestId, digest }: SpendRequest): Promise<StoredReservation | undefined> {
    return this.#store.read(async (tx) =>
      same(await findByRequest(tx, caller, requestId), requestId, digest),
    );
  }

  /**
   * Reserves an amount on every block of a verified chain, or on none.
   *
   * @param assertCounts throws if the chain has become invalid; called in the transaction
   * @throws DeputeError BUDGET_EXCEEDED, LIMIT_EXCEEDED, REQUEST_ID_REUSED; the error of `assertCounts`
   */
  reserve(
    request: SpendRequest,
    blocks: readonly BudgetBlock[],
    assertCounts: () => void,
  ): Promise<Reserved> {
    const run = () => this.#reserve(request, blocks, assertCounts);
    return this.#reader === undefined ? run() : this.#reader.decide(run);
  }

  async #reserve(
    request: SpendRequest,
    blocks: readonly BudgetBlock[],
    assertCounts: () => void,
  ): Promise<Reserved> {
    const { caller, organization, requestId, digest, amount, lifetimeMs } = request;
    return this.#store.write(async (tx) => {
      const now = this.#clock.now();
      const before = same(await findByRequest(tx, caller, requestId), requestId, digest);
      if (before !== undefined) {
        return { reservation: before, remaining: remainingOf(await levelsOf(tx, blocks, now)) };
      }
      await this.#reader?.assertCurrent(tx);
      assertCounts();
      await this.#forget(tx, now);
      const levels: Level[] = [];
      let openOfLast = 0;
      for (const [level, block] of blocks.entries()) {
        const { counted, open } = await holdOn(tx, block, amount, level);
        this.#notes.count(tx, block.revocationId, counted);
        levels.push({ maxBudgetMicrocents: block.maxBudgetMicrocents, counted });
        openOfLast = open;
      }
      assertFewOpen(openOfLast);
      const ids = blocks.map(({ revocationId }) => revocationId);
      const expireTime = now + lifetimeMs;
      const last = Math.max(expireTime, ...blocks.map(({ expiresAt }) => expiresAt));
      const reservation: StoredReservation = {
        ...{ id: newId(now), caller, organization, requestId, digest, state: "held", amount, charged: 0 },
        blocks: ids,
        ...{ createTime: now, expireTime, forgetTime: last + SPEND_RETENTION_MS },
      };
      await insertReservation(tx, reservation);
      await this.#note(tx, reservation, caller, "reserve", `${amount}`);
      tx.afterCommit(() => this.#meter?.reserved(amount));
      return { reservation, remaining: remaining(levels) };
    });
  }

  async #forget(tx: WriteTx, now: number): Promise<void> {
    const monotonicMs = this.#clock.monotonic();
    if (monotonicMs < this.#forgetFrom) return;
    const isMoreDue = await forgetSpend(tx, now, FORGOTTEN_AT_ONCE);
    this.#forgetFrom = isMoreDue ? monotonicMs : monotonicMs + NOTHING_DUE_MS;
  }

  /**
   * Settles a reservation with its outcome.
   *
   * @param maySettle whether the caller may settle the reservations that this principal made
   * @throws DeputeError RESERVATION_NOT_FOUND, RESERVATION_SETTLED, BUDGET_EXCEEDED
   */
  async settle(
    id: string,
    outcome: Outcome,
    caller: string,
    maySettle: (maker: string) => boolean,
  ): Promise<StoredReservation> {
    return this.#store.write(async (tx) => {
      const reservation = await findReservation(tx, id);
      if (reservation === undefined || !maySettle(reservation.caller)) throw notFound(id);
      const next = nextReservation(reservation, outcome);
      if (next === undefined) return reservation;
      const counted = await settleReservation(tx, reservation, next);
      for (const [i, block] of reservation.blocks.entries()) this.#notes.count(tx, block, counted[i] ?? 0);
      await this.#note(
        tx,
        reservation,
        caller,
        outcome === "release" ? "release" : "commit",
        `${next.charged}`,
      );
      tx.afterCommit(() => this.#meter?.charged(next.charged));
      return { ...reservation, ...next };
    });
  }

  /**
   * Returns a reservation that the caller may see.
   *
   * @throws DeputeError RESERVATION_NOT_FOUND
   */
  async find(id: string, maySee: (maker: string) => boolean): Promise<StoredReservation> {
    const reservation = await this.#store.read((tx) => findReservation(tx, id));
    if (reservation === undefined || !maySee(reservation.caller)) throw notFound(id);
    return reservation;
  }

  /** Returns the budget of each block of a chain. */
  async budget(blocks: readonly BudgetBlock[]): Promise<BudgetLevel[]> {
    const now = this.#clock.now();
    return this.#store.read((tx) => levelsOf(tx, blocks, now));
  }

  async #note(
    tx: WriteTx,
    { blocks }: StoredReservation,
    caller: string,
    kind: "reserve" | "commit" | "release",
    reason: string,
  ): Promise<void> {
    await this.#audit.write(tx, { kind, caller, principal: caller, decision: "allowed", reason, blocks });
  }
}

async function levelsOf(tx: ReadTx, blocks: readonly BudgetBlock[], now: number): Promise<BudgetLevel[]> {
  const levels: BudgetLevel[] = [];
  for (const { revocationId, maxBudgetMicrocents: limit } of blocks) {
    const [{ spent, held } = { spent: 0, held: 0 }] = await readSpend(tx, [revocationId]);
    const expired = await readExpired(tx, revocationId, now);
    levels.push({ revocationId, limit, reserved: held - expired, spent: spent + expired });
  }
  return levels;
}

/** Returns the remaining microcents of a chain's budget: the smallest over all blocks. */
export function remainingOf(levels: readonly BudgetLevel[]): number {
  return remaining(levels.map(toLevel));
}

function toLevel({ limit, reserved, spent }: BudgetLevel): Level {
  return { maxBudgetMicrocents: limit, counted: reserved + spent };
}

/**
 * Reserves an amount on one block. Returns the block's new totals.
 *
 * @throws DeputeError BUDGET_EXCEEDED
 */
async function holdOn(tx: WriteTx, block: BudgetBlock, amount: number, level: number): Promise<HeldSpend> {
  const { revocationId, maxBudgetMicrocents: limit, expiresAt } = block;
  const forgetTime = expiresAt + SPEND_RETENTION_MS;
  const totals = await hold(tx, revocationId, { amount, limit, forgetTime });
  if (totals !== undefined) return totals;
  const [{ spent, held } = { spent: 0, held: 0 }] = await readSpend(tx, [revocationId]);
  const unspent = Math.max(0, limit - spent - held);
  throw budgetExceeded(amount, unspent, `the amount exceeds the remaining budget of block ${level}`, level);
}

/** @param open the open reservations of the token's last block, including the new one */
function assertFewOpen(open: number): void {
  if (open <= MAX_OPEN_RESERVATIONS) return;
  throw new DeputeError(
    ErrorReason.LIMIT_EXCEEDED,
    "too many open reservations of this token; settle some first",
    {
      metadata: { limit: "open_reservations", max: String(MAX_OPEN_RESERVATIONS) },
    },
  );
}

function same(
  reservation: StoredReservation | undefined,
  requestId: string,
  digest: string,
): StoredReservation | undefined {
  if (reservation === undefined || reservation.digest === digest) return reservation;
  throw requestIdReused(requestId);
}

function notFound(id: string): DeputeError {
  return new DeputeError(
    ErrorReason.RESERVATION_NOT_FOUND,
    "the reservation does not exist, or the caller may not see it; check the id",
    {
      metadata: { reservation: id },
    },
  );
}
