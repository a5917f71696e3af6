import { DenialType } from "@depute/contracts/delegateos/v0/delegation_pb";
import { type Clock, randomUuid, type Timers } from "@depute/core";
import type { Payer, Reserved, Spender } from "./authoriser.ts";
import { callsToReserve, isNearlyUsedUp, SHARED_MS } from "./rules/shared-reservation.ts";
import type { SettleFault } from "./settle.ts";

/** Maximum number of tokens with shared reservations. Each call under a further token has a reservation of its own. */
const MAX_TOKENS = 10_000;

export interface SharedReservationsOptions {
  readonly spender: Spender;
  /** Maximum number of calls for which one reservation is made, at least 1. */
  readonly maxCalls: number;
  readonly clock: Clock;
  readonly timers: Timers;
  /** Called for a reservation that could not be settled after its calls. */
  readonly onFault: SettleFault;
}

/** A reservation at the tokens service that several calls may use. */
interface Shared {
  readonly id: string;
  /** The number of calls for which the reservation was made. */
  readonly calls: number;
  /** The monotonic time of the reservation, in milliseconds. */
  readonly madeMs: number;
  /** The remaining budget of the token after the reservation, in microcents. */
  readonly remainingMicrocents: number;
  /** The amount in microcents that no call has taken. */
  free: number;
  /** The number of calls that have taken a part. */
  used: number;
  /** The number of these calls that are not settled. */
  open: number;
  /** The sum of the charges of settled calls, in microcents. */
  charged: number;
  /** Whether no further call may use the reservation. */
  isClosed: boolean;
  /** Whether the reservation does not suffice for all calls of its time. */
  isUsedUp: boolean;
  /** Whether the settlement has begun. */
  isSettling: boolean;
}

/** The reservations under one token. */
interface OfToken {
  /** The revocation id of the token's authority block. */
  readonly root: string;
  /** The reservation that the next call uses. */
  current?: Shared | undefined;
  /** The reservation that replaces `current` when that is used up. */
  next?: Shared | undefined;
  /** The last reservation that was made. */
  last?: Shared;
  /** Whether a reservation for several calls is being made. */
  isReserving: boolean;
}

/** A reservation, the number of calls for which it was made, and its amount in microcents. */
type ReservedForCalls = Reserved & { readonly calls: number; readonly amount: number };

/** The part of a shared reservation that one call has taken. */
interface Part {
  readonly shared: Shared;
  /** The amount in microcents. */
  readonly amount: number;
}

/**
 * Lets quickly repeated calls under one token share a reservation. The reservation is durable before the first of these
 * calls, so no budget is overspent, and the further calls wait for no write. The number of calls and the duration of a
 * shared reservation are limited: see {@link callsToReserve} and {@link SHARED_MS}. The reservation is settled once, with
 * the sum of the calls' charges. If this process ends before that, the whole reservation is charged when it expires.
 */
export class SharedReservations implements Spender {
  readonly #options: SharedReservationsOptions;
  readonly #tokens = new Map<string, OfToken>();
  /** The unsettled parts by id. */
  readonly #parts = new Map<string, Part>();
  /** Reservations and settlements in progress that no call waits for. */
  readonly #background = new Set<Promise<unknown>>();
  /** Functions that cancel the running timers. */
  readonly #timers = new Set<() => void>();

  constructor(options: SharedReservationsOptions) {
    this.#options = options;
  }

  async reserve(payer: Payer, microcents: number, requestId: string): Promise<Reserved> {
    const own: OfToken = this.#tokens.get(payer.token) ?? { root: rootOf(payer), isReserving: false };
    const usable = this.#usable(own, microcents);
    if (usable !== undefined) {
      const part = this.#take(usable, microcents);
      this.#reserveNext(payer, own, microcents);
      return part;
    }
    // While a reservation for several calls is being made, other calls make their own and need not wait.
    if (own.isReserving) return this.#reserveOne(payer, microcents, requestId);
    const reserved = await this.#reserveFor(payer, own, microcents, requestId);
    if (!reserved.ok) return reserved;
    const shared = this.#share(payer, own, reserved);
    const part = this.#take(shared, microcents);
    if (shared.isClosed) return part;
    if (own.current !== undefined) this.#close(own.current);
    own.current = shared;
    return part;
  }

  async commit(id: string, microcents: number | undefined): Promise<number> {
    const part = this.#parts.get(id);
    if (part === undefined) return this.#options.spender.commit(id, microcents);
    const charged = microcents ?? part.amount;
    await this.#end(id, part, charged);
    return charged;
  }

  async release(id: string): Promise<void> {
    const part = this.#parts.get(id);
    if (part === undefined) return this.#options.spender.release(id);
    await this.#end(id, part, 0);
  }

  /** Settles all reservations whose calls have ended. Call this method after all calls. */
  async close(): Promise<void> {
    await Promise.all(this.#background);
    for (const cancel of this.#timers) cancel();
    this.#timers.clear();
    for (const { current, next } of this.#tokens.values()) {
      for (const shared of [current, next]) if (shared !== undefined) this.#close(shared);
    }
    this.#tokens.clear();
    await Promise.all(this.#background);
  }

  /** Returns an open reservation with at least this amount, if there is one. */
  #usable(own: OfToken, microcents: number): Shared | undefined {
    const isUsable = (shared: Shared) => !shared.isClosed && shared.free >= microcents;
    if (own.current === undefined || isUsable(own.current)) return own.current;
    if (!own.current.isClosed) own.current.isUsedUp = true;
    this.#close(own.current);
    own.current = own.next;
    own.next = undefined;
    return own.current !== undefined && isUsable(own.current) ? own.current : undefined;
  }

  #take(shared: Shared, amount: number): Extract<Reserved, { ok: true }> {
    shared.free -= amount;
    shared.used++;
    shared.open++;
    if (shared.free === 0) {
      shared.isUsedUp = true;
      shared.isClosed = true;
    }
    const reservationId = `${shared.id}/${shared.used}`;
    this.#parts.set(reservationId, { shared, amount });
    return { ok: true, reservationId, remainingMicrocents: shared.remainingMicrocents };
  }

  /** Makes the reservation for the following calls before the first of them arrives. */
  #reserveNext(payer: Payer, own: OfToken, cost: number): void {
    const { current, next, isReserving } = own;
    if (current === undefined || next !== undefined || isReserving) return;
    if (!isNearlyUsedUp(current.free, current.calls, cost)) return;
    current.isUsedUp = true;
    const calls = this.#callsFor(own, cost);
    if (calls === 1) return;
    const reserving = this.#reserveSeveral(payer, own, { cost, calls, requestId: randomUuid() });
    const made = reserving.then((reserved) => {
      if (!reserved.ok) return;
      const shared = this.#share(payer, own, reserved);
      if (own.current?.isClosed === false) own.next = shared;
      else own.current = shared;
    });
    // A call that finds no reservation makes one itself, and reports the fault.
    this.#inBackground(made.catch(() => {}));
  }

  #callsFor({ last }: OfToken, cost: number): number {
    const { clock, maxCalls } = this.#options;
    return callsToReserve(last && { ...last, ageMs: clock.monotonic() - last.madeMs }, cost, maxCalls);
  }

  /**
   * Makes a reservation for a call, and for as many further calls as the rule says. If the budget does not suffice for
   * more, the reservation is for this call alone.
   */
  async #reserveFor(payer: Payer, own: OfToken, cost: number, requestId: string): Promise<ReservedForCalls> {
    const calls = this.#callsFor(own, cost);
    if (calls > 1) {
      const reserved = await this.#reserveSeveral(payer, own, { cost, calls, requestId: randomUuid() });
      if (reserved.ok) return reserved;
    }
    return { ...(await this.#reserveOne(payer, cost, requestId)), calls: 1, amount: cost };
  }

  /**
   * Makes a reservation for one call. If the budget does not suffice, first settles the reservations that no call uses,
   * and tries once more.
   */
  async #reserveOne(payer: Payer, cost: number, requestId: string): Promise<Reserved> {
    const { spender } = this.#options;
    const reserved = await spender.reserve(payer, cost, requestId);
    if (reserved.ok || reserved.denial.type !== DenialType.BUDGET_EXCEEDED) return reserved;
    return (await this.#closeUnused(rootOf(payer))) ? spender.reserve(payer, cost, randomUuid()) : reserved;
  }

  async #reserveSeveral(
    payer: Payer,
    own: OfToken,
    { cost, calls, requestId }: { readonly cost: number; readonly calls: number; readonly requestId: string },
  ): Promise<ReservedForCalls> {
    own.isReserving = true;
    try {
      const amount = calls * cost;
      return { ...(await this.#options.spender.reserve(payer, amount, requestId)), calls, amount };
    } finally {
      own.isReserving = false;
    }
  }

  #share(
    { token }: Payer,
    own: OfToken,
    { reservationId, remainingMicrocents, calls, amount }: Extract<ReservedForCalls, { ok: true }>,
  ): Shared {
    const madeMs = this.#options.clock.monotonic();
    const shared: Shared = {
      ...{ id: reservationId, calls, madeMs, remainingMicrocents },
      ...{ free: amount, used: 0, open: 0, charged: 0, isClosed: false, isUsedUp: false, isSettling: false },
    };
    own.last = shared;
    if (this.#tokens.size < MAX_TOKENS && !this.#tokens.has(token)) this.#tokens.set(token, own);
    if (calls > 1) this.#after(SHARED_MS, () => this.#close(shared));
    this.#after(2 * SHARED_MS, () => {
      if (own.last === shared && this.#tokens.get(token) === own) this.#tokens.delete(token);
    });
    return shared;
  }

  #after(ms: number, run: () => void): void {
    const cancel = this.#options.timers.after(ms, () => {
      this.#timers.delete(cancel);
      run();
    });
    this.#timers.add(cancel);
  }

  /** Settles the part of one call. The last call of a closed reservation waits for the settlement of the whole. */
  async #end(id: string, { shared, amount }: Part, charged: number): Promise<void> {
    this.#parts.delete(id);
    shared.open--;
    shared.charged += charged;
    shared.free += amount - charged;
    if (shared.isClosed && shared.open === 0) await this.#settle(shared);
  }

  #close(shared: Shared): void {
    shared.isClosed = true;
    if (shared.open > 0 || shared.isSettling) return;
    this.#inBackground(this.#settleOrReport(shared));
  }

  /**
   * Closes the reservations under all tokens with this authority block, because they share its budget. Waits for the
   * settlement of those that no call uses.
   *
   * @returns whether such a reservation existed
   */
  async #closeUnused(root: string): Promise<boolean> {
    const unused: Shared[] = [];
    for (const own of this.#tokens.values()) {
      if (own.root !== root) continue;
      for (const shared of [own.current, own.next]) {
        if (shared?.isClosed !== false) continue;
        shared.isClosed = true;
        if (shared.open === 0) unused.push(shared);
      }
    }
    await Promise.all(unused.map((shared) => this.#settleOrReport(shared)));
    return unused.length > 0;
  }

  /** Settles a reservation. Reports a fault, and never rejects. */
  #settleOrReport(shared: Shared): Promise<void> {
    return this.#settle(shared).catch((thrown) => this.#options.onFault(shared.id, thrown));
  }

  async #settle(shared: Shared): Promise<void> {
    shared.isSettling = true;
    const { spender } = this.#options;
    if (shared.charged === 0) await spender.release(shared.id);
    else await spender.commit(shared.id, shared.charged);
  }

  #inBackground(work: Promise<unknown>): void {
    this.#background.add(work);
    void work.finally(() => this.#background.delete(work));
  }
}

/** Returns the revocation id of the token's authority block. */
function rootOf({ blocks }: Payer): string {
  return blocks[0] ?? "";
}
