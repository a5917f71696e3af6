import { type Clock, DeputeError, ErrorReason, type Timers } from "@depute/core";

export interface FairTurnsOptions {
  readonly clock: Clock;
  readonly timers: Timers;
  /**
   * Maximum number of turns at a time. The same number of further turns is only for callers that have no turn. Default
   * 256.
   */
  readonly maxTurns?: number;
  /** Number of turns at a time that several active callers share. Each caller gets at least one. Default 16. */
  readonly sharedTurns?: number;
  /** Maximum number of waiting calls of one caller. Default 10,000. */
  readonly maxWaiting?: number;
}

/**
 * A caller with at most LIGHT_CALLS calls in progress is light. A caller with more than HEAVY_CALLS calls yields to
 * light callers.
 */
const LIGHT_CALLS = 4;
const HEAVY_CALLS = 16;
/**
 * Number of calls that a yielding caller may run at a time. With one turn, a create call beside 3,000 others takes 2.1
 * times as long as alone. With two turns, it takes 2.6 times as long. The other callers then make 9 % more create calls
 * (`npm run bench -- fairness`).
 */
const YIELDING_TURNS = 1;
/** Milliseconds for which other callers yield after the arrival of a light caller's call. */
const YIELD_MS = 100;
/** Maximum number of waiting calls of all callers. */
const MAX_WAITING_TOTAL = 100_000;
/** Milliseconds after which a caller without calls is no longer active. */
const ACTIVE_MS = 1_000;
/**
 * Milliseconds after which a turn ends while other calls wait for a turn. A call that runs longer probably waits for
 * I/O. The call itself continues.
 */
const TURN_MS = 50;
/** Milliseconds after which a refused caller may call again. */
const RETRY_MS = 1_000;

/** The right of a call to run. A second `end` has no effect. */
export interface Turn {
  end(): void;
}

/** The calls of one caller. */
interface Line {
  readonly key: string;
  running: number;
  /** Functions that begin the waiting calls, in order of arrival. */
  readonly waiting: Set<(turn: Turn) => void>;
  /** The time at which the caller's last call arrived. */
  activeMs: number;
}

/**
 * Orders calls before they use the processor and the store. A caller that is alone has up to 256 calls running at a
 * time. As soon as another caller is active, the callers share 16 turns. While a light caller makes calls, each heavy
 * caller has one turn. Therefore a call waits behind few calls of other callers, however many calls the others have in
 * progress. Waiting callers take turns, and each caller's calls begin in order.
 */
export class FairTurns {
  readonly #options: Required<FairTurnsOptions>;
  /** The callers that have calls, or were active recently, by the callers' names. */
  readonly #lines = new Map<string, Line>();
  /** The callers with waiting calls, the next one first. */
  readonly #waiting = new Map<string, Line>();
  /** The running calls with the times at which they began, the oldest first. */
  readonly #running = new Map<Turn, { readonly line: Line; readonly beginMs: number }>();
  #waitingCalls = 0;
  /** Number of light callers that have calls in progress. */
  #lightLines = 0;
  /** The last light caller that made or ended a call. */
  #lastLight: Line | undefined;
  #cancelTimer: (() => void) | undefined;

  constructor(options: FairTurnsOptions) {
    this.#options = { maxTurns: 256, sharedTurns: 16, maxWaiting: 10_000, ...options };
  }

  /** Number of waiting calls. */
  get waiting(): number {
    return this.#waitingCalls;
  }

  /**
   * Gives a turn to a call, at once if a turn is free.
   *
   * @param key the caller
   * @param signal removes a waiting call from its queue; the promise then rejects with the signal's reason
   * @throws DeputeError LIMIT_EXCEEDED if too many calls wait
   */
  enter(key: string, signal: AbortSignal): Turn | Promise<Turn> {
    const line = this.#lineOf(key);
    if (line.waiting.size === 0) {
      if (!this.#hasRoom(line)) this.#endLongTurns();
      if (line.waiting.size === 0 && this.#hasRoom(line)) return this.#begin(line);
    }
    const { maxWaiting } = this.#options;
    if (line.waiting.size >= maxWaiting || this.#waitingCalls >= MAX_WAITING_TOTAL) throw tooMany(maxWaiting);
    return new Promise((resolve, reject) => {
      const leave = () => {
        this.#withdraw(line, begin);
        reject(signal.reason);
      };
      const begin = (turn: Turn) => {
        signal.removeEventListener("abort", leave);
        resolve(turn);
      };
      signal.addEventListener("abort", leave, { once: true });
      this.#change(line, () => line.waiting.add(begin));
      this.#waitingCalls += 1;
      this.#waiting.set(key, line);
      this.#watch();
    });
  }

  #lineOf(key: string): Line {
    const activeMs = this.#options.clock.monotonic();
    const known = this.#lines.get(key);
    if (known !== undefined) {
      known.activeMs = activeMs;
      return known;
    }
    this.#forgetInactive();
    const line: Line = { key, running: 0, waiting: new Set(), activeMs };
    this.#lines.set(key, line);
    return line;
  }

  #forgetInactive(): void {
    const beforeMs = this.#options.clock.monotonic() - ACTIVE_MS;
    for (const line of this.#lines.values()) {
      if (callsOf(line) === 0 && line.activeMs <= beforeMs) this.#lines.delete(line.key);
    }
  }

  #hasRoom(line: Line): boolean {
    const { maxTurns, sharedTurns } = this.#options;
    // A caller without a turn need not wait for the calls of a caller that has all turns.
    if (line.running === 0) return this.#running.size < 2 * maxTurns;
    if (this.#running.size >= maxTurns) return false;
    if (this.#lines.size === 1) return true;
    if (callsOf(line) > HEAVY_CALLS && this.#yieldsToLight(line)) return line.running < YIELDING_TURNS;
    return line.running < sharedTurns / this.#lines.size;
  }

  /** Whether another caller is light, and has calls in progress or had a call within YIELD_MS. */
  #yieldsToLight(line: Line): boolean {
    const light = this.#lastLight;
    if (light === undefined || light === line || callsOf(light) > LIGHT_CALLS) return this.#lightLines > 0;
    return this.#lightLines > 0 || this.#options.clock.monotonic() - light.activeMs < YIELD_MS;
  }

  /** Changes the calls of one caller, and updates the number of light callers. */
  #change(line: Line, change: () => void): void {
    const wasLight = isLight(line);
    change();
    if (isLight(line)) this.#lastLight = line;
    this.#lightLines += Number(isLight(line)) - Number(wasLight);
  }

  #begin(line: Line): Turn {
    const turn: Turn = { end: () => this.#end(turn) };
    this.#running.set(turn, { line, beginMs: this.#options.clock.monotonic() });
    this.#change(line, () => {
      line.running += 1;
    });
    return turn;
  }

  #end(turn: Turn): void {
    const running = this.#running.get(turn);
    if (running === undefined) return;
    this.#running.delete(turn);
    this.#change(running.line, () => {
      running.line.running -= 1;
    });
    this.#beginWaiting();
  }

  /** Lets waiting calls begin, one of each caller in turn, while there is room. */
  #beginWaiting(): void {
    for (const line of this.#waiting.values()) {
      const [begin] = line.waiting;
      if (begin === undefined || !this.#hasRoom(line)) continue;
      this.#withdraw(line, begin);
      const turn = this.#begin(line);
      // The caller goes to the end of the queue of callers, and this loop continues with the next caller.
      if (this.#waiting.delete(line.key) && line.waiting.size > 0) this.#waiting.set(line.key, line);
      begin(turn);
    }
  }

  #withdraw(line: Line, begin: (turn: Turn) => void): void {
    let wasThere = false;
    this.#change(line, () => {
      wasThere = line.waiting.delete(begin);
    });
    if (!wasThere) return;
    this.#waitingCalls -= 1;
    if (line.waiting.size === 0) this.#waiting.delete(line.key);
  }

  /** While calls wait, ends turns that last too long. */
  #watch(): void {
    this.#cancelTimer ??= this.#options.timers.after(TURN_MS, () => {
      this.#cancelTimer = undefined;
      if (this.#waitingCalls === 0) return;
      this.#watch();
      this.#forgetInactive();
      this.#endLongTurns();
      this.#beginWaiting();
    });
  }

  #endLongTurns(): void {
    const beforeMs = this.#options.clock.monotonic() - TURN_MS;
    for (const [turn, { beginMs }] of this.#running) {
      if (beginMs > beforeMs) break;
      this.#end(turn);
    }
  }
}

/**
 * Returns the name of the queue in which a call waits: its principal, or the client's address if no principal is proven
 * yet.
 *
 * @param principal empty for none
 */
export function lineOf(principal: string, address: string): string {
  return principal === "" ? `address ${address}` : principal;
}

function callsOf({ running, waiting }: Line): number {
  return running + waiting.size;
}

function isLight(line: Line): boolean {
  const calls = callsOf(line);
  return calls > 0 && calls <= LIGHT_CALLS;
}

function tooMany(max: number): DeputeError {
  return new DeputeError(ErrorReason.LIMIT_EXCEEDED, "too many calls of this caller wait; call again later", {
    metadata: { limit: "waiting_calls", max: String(max), retry_after_ms: String(RETRY_MS) },
  });
}
