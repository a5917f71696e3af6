import { type Clock, DeputeError, ErrorReason } from "@depute/core";
import { CALL_CLASSES, type CallClass } from "./call-class.ts";
import { take, use, waitOf } from "./rate.ts";

/** Resources of which calls use an amount that is known only after the use. */
export const AMOUNTS = ["bytes", "verification_cpu_ms"] as const;
export type Amount = (typeof AMOUNTS)[number];

/** The quotas of one principal in one service. */
export interface QuotaLimits {
  /** Maximum number of calls a second, by class. */
  readonly perSecond: Readonly<Record<CallClass, number>>;
  /** Maximum amount per second: bytes of messages, and milliseconds of processor time. */
  readonly amounts: Readonly<Record<Amount, number>>;
  /** Maximum number of open streams. */
  readonly openStreams: number;
  /** Maximum number of open tasks. All replicas count them together, in their common store. */
  readonly openTasks: number;
  /** The quotas of an organization are this many times as large as those of a principal. */
  readonly organizationFactor: number;
  /** Number of replicas among which each quota except `openTasks` is divided. */
  readonly replicas: number;
}

/** The part of a call that counts until the call ends, such as an open stream. */
export interface Charge {
  end(): void;
}

/** Maximum number of principals and organizations whose use is counted at the same time. */
const MAX_ACCOUNTS = 20_000;
/** Milliseconds after which a caller with the maximum number of open streams or open tasks may try again. */
const PLACE_RETRY_MS = 1_000;

/** The classes of calls that verify tokens or outputs. */
const VERIFYING: ReadonlySet<CallClass> = new Set(["mint", "verification"]);

/** The owner of a quota: a principal or an organization. */
export type QuotaOwner = "principal" | "organization";

/** The names of all rates: the classes of calls, and the amounts. */
const RATES: readonly (CallClass | Amount)[] = [...CALL_CLASSES, ...AMOUNTS];

/** The use of the quotas by one principal or organization. */
interface Account {
  readonly owner: QuotaOwner;
  /** The states of the rates, by the index of the rate's name in RATES; see `take`. */
  readonly dueMs: Float64Array;
  openStreams: number;
}

const NOTHING: Charge = { end() {} };

/** The dependencies of {@link Quotas} on its process. */
export interface QuotasOptions {
  readonly clock: Clock;
  /** Called for each refusal, with the name of the limit, e.g. `principal_read_calls_per_second`. */
  readonly onRefusal?: (limit: string) => void;
  /** Called with the seconds of processor time that a verification used. */
  readonly onCpu?: (seconds: number) => void;
}

/**
 * Counts calls, open streams and amounts against the quotas of principals and organizations, in the memory of this
 * process. The number of counted principals and organizations is limited. At the limit, the process forgets the
 * principal or organization without open streams that called least recently.
 */
export class Quotas {
  /** The clock of the rates. It also measures how long a step of a verification takes. */
  readonly clock: Clock;
  readonly #limits: QuotaLimits;
  readonly #options: QuotasOptions;
  readonly #accounts = new Map<string, Account>();
  /** The latest `dueMs` of any account for each amount, by the index of the amount in AMOUNTS. */
  readonly #latestDueMs = new Float64Array(AMOUNTS.length);

  constructor(limits: QuotaLimits, options: QuotasOptions) {
    this.clock = options.clock;
    this.#limits = limits;
    this.#options = options;
  }

  /**
   * Counts a call for the principal and for the organization; a refused call counts for neither. Also refuses the call
   * if the caller has used up its quota of bytes or, for a call that verifies, its quota of processor time.
   *
   * @param organization empty for none
   * @returns the charge. For a call of the class `stream`, call its `end` when the stream ends; for other calls `end`
   * has no effect
   * @throws DeputeError LIMIT_EXCEEDED with `retry_after_ms`
   */
  charge(kind: CallClass, principal: string, organization: string): Charge {
    const accounts = this.#accountsOf(principal, organization);
    for (const account of accounts) {
      this.#assertAmount("bytes", account);
      if (VERIFYING.has(kind)) this.#assertAmount("verification_cpu_ms", account);
    }
    const states = accounts.map((account) => this.#taken(kind, account));
    for (const [i, { dueMs }] of accounts.entries()) dueMs[RATES.indexOf(kind)] = states[i] ?? 0;
    return kind === "stream" ? opened(accounts) : NOTHING;
  }

  /**
   * Requires that a caller and its organization have room in their quotas of an amount.
   *
   * @throws DeputeError LIMIT_EXCEEDED with `retry_after_ms`
   */
  assertRoom(amount: Amount, principal: string, organization: string): void {
    for (const account of this.#accountsOf(principal, organization)) this.#assertAmount(amount, account);
  }

  /**
   * Returns the milliseconds until a caller and its organization have room in their quotas of an amount; 0 for room
   * now.
   */
  waitOf(amount: Amount, principal: string, organization: string): number {
    const waits = this.#accountsOf(principal, organization).map((account) => this.#wait(amount, account));
    return Math.max(...waits);
  }

  /** Counts an amount that a caller has used. The amount may exceed the quota. */
  use(amount: Amount, count: number, principal: string, organization: string): void {
    if (amount === "verification_cpu_ms") this.#options.onCpu?.(count / 1000);
    const i = RATES.indexOf(amount);
    const nowMs = this.clock.monotonic();
    for (const { owner, dueMs } of this.#accountsOf(principal, organization)) {
      const nextMs = use(this.#rateOf(amount, owner), dueMs[i] ?? 0, nowMs, count);
      dueMs[i] = nextMs;
      const latestMs = this.#latestDueMs[AMOUNTS.indexOf(amount)] ?? 0;
      this.#latestDueMs[AMOUNTS.indexOf(amount)] = Math.max(latestMs, nextMs);
    }
  }

  /** Whether at least one caller may have used up its quota of an amount. */
  isScarce(amount: Amount): boolean {
    return waitOf(this.#latestDueMs[AMOUNTS.indexOf(amount)] ?? 0, this.clock.monotonic()) > 0;
  }

  /** Returns the maximum number of open tasks of a principal or of an organization. */
  maxOpenTasks(owner: QuotaOwner): number {
    return this.#limits.openTasks * this.#factorOf(owner);
  }

  /**
   * Returns the error that refuses a task because its principal or organization has the maximum number of open tasks.
   */
  tooManyTasks(owner: QuotaOwner): DeputeError {
    return used(owner, "open_tasks", this.maxOpenTasks(owner), PLACE_RETRY_MS);
  }

  /** Reports an exception to `onRefusal` if it is a refusal by a quota. */
  noteRefusal(thrown: unknown): void {
    const { limit = "" } = thrown instanceof DeputeError ? thrown.metadata : {};
    if (/^(?:principal|organization)_/.test(limit)) this.#options.onRefusal?.(limit);
  }

  #factorOf(owner: QuotaOwner): number {
    return owner === "principal" ? 1 : this.#limits.organizationFactor;
  }

  /** Returns the calls or the amount per second that this replica grants to an owner. */
  #rateOf(name: CallClass | Amount, owner: QuotaOwner): number {
    const { perSecond, amounts, replicas } = this.#limits;
    const rate = isAmount(name) ? amounts[name] : perSecond[name];
    return (rate * this.#factorOf(owner)) / replicas;
  }

  #wait(amount: Amount, { dueMs }: Account): number {
    return waitOf(dueMs[RATES.indexOf(amount)] ?? 0, this.clock.monotonic());
  }

  #assertAmount(amount: Amount, account: Account): void {
    const waitMs = this.#wait(amount, account);
    if (waitMs === 0) return;
    const { owner } = account;
    throw used(owner, `${amount}_per_second`, this.#rateOf(amount, owner), waitMs);
  }

  /** Returns the state of a rate after one more call. Throws DeputeError LIMIT_EXCEEDED if the rate allows no call. */
  #taken(kind: CallClass, { owner, openStreams, dueMs }: Account): number {
    const { openStreams: maxOpen, replicas } = this.#limits;
    const maxStreams = Math.max(1, Math.floor((maxOpen * this.#factorOf(owner)) / replicas));
    if (kind === "stream" && openStreams >= maxStreams)
      throw used(owner, "open_streams", maxStreams, PLACE_RETRY_MS);
    const rate = this.#rateOf(kind, owner);
    const taken = take(rate, dueMs[RATES.indexOf(kind)] ?? 0, this.clock.monotonic());
    if ("dueMs" in taken) return taken.dueMs;
    throw used(owner, `${kind}_calls_per_second`, rate, taken.retryAfterMs);
  }

  #accountsOf(principal: string, organization: string): Account[] {
    const own = this.#accountOf(`principal ${principal}`, "principal");
    if (organization === "") return [own];
    return [own, this.#accountOf(`organization ${organization}`, "organization")];
  }

  #accountOf(key: string, owner: QuotaOwner): Account {
    const account = this.#accounts.get(key) ?? {
      owner,
      dueMs: new Float64Array(RATES.length),
      openStreams: 0,
    };
    // A Map keeps the order of insertion, so the account that called least recently is the first.
    this.#accounts.delete(key);
    this.#accounts.set(key, account);
    if (this.#accounts.size > MAX_ACCOUNTS) this.#forgetOldest(key);
    return account;
  }

  #forgetOldest(kept: string): void {
    for (const [key, { openStreams }] of this.#accounts) {
      if (openStreams > 0 || key === kept) continue;
      this.#accounts.delete(key);
      return;
    }
  }
}

function isAmount(name: CallClass | Amount): name is Amount {
  return name === "bytes" || name === "verification_cpu_ms";
}

function opened(accounts: readonly Account[]): Charge {
  for (const account of accounts) account.openStreams += 1;
  let isOpen = true;
  return {
    end() {
      if (!isOpen) return;
      isOpen = false;
      for (const account of accounts) account.openStreams -= 1;
    },
  };
}

function used(owner: QuotaOwner, limit: string, max: number, retryAfterMs: number): DeputeError {
  const message = `the ${owner} has used its quota of ${max} ${limit.replaceAll("_", " ")}; call again in ${retryAfterMs} ms`;
  return new DeputeError(ErrorReason.LIMIT_EXCEEDED, message, {
    metadata: { limit: `${owner}_${limit}`, max: String(max), retry_after_ms: String(retryAfterMs) },
  });
}
