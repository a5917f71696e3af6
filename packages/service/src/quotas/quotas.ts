import { type Clock, DeputeError, ErrorReason } from "@depute/core";
import { CALL_CLASSES, type CallClass } from "./call-class.ts";
import { take } from "./rate.ts";

/** Quotas of one principal. */
export interface QuotaLimits {
  /** Maximum number of calls a second, by class. */
  readonly perSecond: Readonly<Record<CallClass, number>>;
  /** Maximum number of open streams. */
  readonly openStreams: number;
  /** An organization has this many times the quotas of a principal. */
  readonly organizationFactor: number;
  /** Number of replicas among which each quota is divided. */
  readonly replicas: number;
}

/** The part of a call that counts until the call ends. */
export interface Charge {
  end(): void;
}

/** Maximum number of principals and organizations that are counted. */
const MAX_ACCOUNTS = 20_000;
/** Milliseconds after which a caller without a free stream may try again. */
const STREAM_RETRY_MS = 1_000;

/** The use of quotas by one principal or organization. */
interface Account {
  /** The states of the rates, by the position of the class in CALL_CLASSES; see `take`. */
  readonly dueMs: Float64Array;
  openStreams: number;
}

const NOTHING: Charge = { end() {} };

/**
 * Counts calls and open streams against the quotas of principals and organizations, in the memory of this process. The
 * number of counted principals and organizations is limited. At the limit, the process forgets the one that called
 * least recently and has no open stream.
 */
export class Quotas {
  readonly #limits: QuotaLimits;
  readonly #clock: Clock;
  readonly #accounts = new Map<string, Account>();

  constructor(limits: QuotaLimits, clock: Clock) {
    this.#limits = limits;
    this.#clock = clock;
  }

  /**
   * Counts a call. A refused call counts neither for the principal nor for the organization.
   *
   * @param organization empty for none
   * @returns the open stream to end, for a call of the class `stream`
   * @throws DeputeError LIMIT_EXCEEDED with `retry_after_ms`
   */
  charge(kind: CallClass, principal: string, organization: string): Charge {
    const own = this.#accountOf(`principal ${principal}`);
    const states = [this.#taken(kind, own, "principal", 1)];
    const accounts = [own];
    if (organization !== "") {
      const shared = this.#accountOf(`organization ${organization}`);
      states.push(this.#taken(kind, shared, "organization", this.#limits.organizationFactor));
      accounts.push(shared);
    }
    for (const [i, { dueMs }] of accounts.entries()) dueMs[CALL_CLASSES.indexOf(kind)] = states[i] ?? 0;
    return kind === "stream" ? opened(accounts) : NOTHING;
  }

  /** Returns the next state of a rate. */
  #taken(kind: CallClass, account: Account, owner: Owner, factor: number): number {
    const { perSecond, openStreams, replicas } = this.#limits;
    const scale = factor / replicas;
    const maxStreams = Math.max(1, Math.floor(openStreams * scale));
    if (kind === "stream" && account.openStreams >= maxStreams)
      throw used(owner, "open_streams", maxStreams, STREAM_RETRY_MS);
    const rate = perSecond[kind] * scale;
    const taken = take(rate, account.dueMs[CALL_CLASSES.indexOf(kind)] ?? 0, this.#clock.monotonic());
    if ("dueMs" in taken) return taken.dueMs;
    throw used(owner, `${kind}_calls_per_second`, rate, taken.retryAfterMs);
  }

  #accountOf(key: string): Account {
    const account = this.#accounts.get(key) ?? {
      dueMs: new Float64Array(CALL_CLASSES.length),
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

type Owner = "principal" | "organization";

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

function used(owner: Owner, limit: string, max: number, retryAfterMs: number): DeputeError {
  const message = `the ${owner} has used its quota of ${max} ${limit.replaceAll("_", " ")}; call again in ${retryAfterMs} ms`;
  return new DeputeError(ErrorReason.LIMIT_EXCEEDED, message, {
    metadata: { limit: `${owner}_${limit}`, max: String(max), retry_after_ms: String(retryAfterMs) },
  });
}
