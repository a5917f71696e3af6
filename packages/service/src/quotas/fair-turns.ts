import { type Clock, DeputeError, ErrorReason, type Timers } from "@depute/core";

export interface FairTurnsOptions {
  readonly clock: Clock;
  readonly timers: Timers;
  /**
   * Maximum number of turns at a time, for all callers. The same number of further turns is reserved for callers that
   * have no turn. Default 256.
   */
  readonly maxTurns?: number;
  /** Number of turns that several active callers share. Each of them gets at least one turn. Default 16. */
  readonly sharedTurns?: number;
  /** Maximum number of waiting calls of one caller. Default 10,000. */
  readonly maxWaiting?: number;
}

/**
 * A caller with at most LIGHT_CALLS calls in progress is light. A caller with more than HEAVY_CALLS calls in progress
 * is heavy, and yields to light callers.
 */
const LIGHT_CALLS = 4;
const HEAVY_CALLS = 16;
/** Number of turns of a caller that yields. With two turns, the light caller's calls take longer. */
const YIELDING_TURNS = 1;
/** Milliseconds for which heavy callers yield after a call of a light caller has arrived. */
const YIELD_MS = 100;
/** Milliseconds after a light caller's call began for which heavy callers wait for its end. */
const PAUSE_DURING_MS = 10;
/**
 * Milliseconds after the end of the last call of light callers for which heavy callers wait for the next one. A light
 * caller that makes one call after the other usually calls again in this time.
 */
const PAUSE_AFTER_MS = 2;
/** Maximum number of waiting calls of all callers. */
const MAX_WAITING_TOTAL = 100_000;
/** Milliseconds after which a caller without calls is no longer active. */
const ACTIVE_MS = 1_000;
/**
 * Milliseconds after which a turn ends if other calls wait for a turn. A call that runs longer probably waits for I/O.
 * The call itself continues.
 */
const TURN_MS = 50;
/** Milliseconds after which a refused caller may call again. */
const RETRY_MS = 1_000;

/** The right of a call to run. Only the first call of `end` has an effect. */
export interface Turn {
  end(): void;
}

/** The calls of one caller. */
interface Line {
  readonly key: string;
  running: number;
  /** Functions that begin the waiting calls, in order of arrival. */
  readonly waiting: Set<(turn: Turn) => void>;
  /** The time at which the caller's last call arrived, in milliseconds of the monotonic clock. */
  activeMs: number;
}

/**
 * Decides when calls begin, before they use the processor and the store. By default, a single active caller may have
 * 256 running calls. Several active callers share 16 turns, and while a light caller makes calls, each heavy caller has
 * one turn. So a call waits behind few calls of other callers, however many calls the other callers have in progress.
 * Waiting callers get turns one after the other, and the calls of one caller begin in order.
 *
 * A heavy caller that yields begins its calls together with calls of light callers, so that the store commits the writes
 * of both at once. Otherwise a light caller's write would usually wait for the heavy caller's commit, and then for its
 * own. Heavy callers pause between these calls, but not longer than PAUSE_DURING_MS or PAUSE_AFTER_MS, and only while
 * fewer than the maximum number of turns are in use.
 */
export class FairTurns {
  readonly #options: Required<FairTurnsOptions>;
  /** The callers that have calls, or were active recently, by the callers' names. */
  readonly #lines = new Map<string, Line>();
  /** The callers with waiting calls, in the order of their next turns. */
  readonly #waiting = new Map<string, Line>();
  /** The turns of running calls, with the times at which the calls began, the oldest first. */
  readonly #running = new Map<Turn, { readonly line: Line; readonly beginMs: number }>();
  #waitingCalls = 0;
  /** Number of light callers that have calls in progress. */
  #lightLines = 0;
  /** The light caller whose calls changed last. */
  #lastLight: Line | undefined;
  /** The time at which the heavy callers' pause ends, in milliseconds of the monotonic clock. */
  #pauseEndMs = 0;
  #cancelTimer: (() => void) | undefined;
  #cancelPauseTimer: (() => void) | undefined;

  constructor(options: FairTurnsOptions) {
    this.#options = { maxTurns: 256, sharedTurns: 16, maxWaiting: 10_000, ...options };
  }

  /** Number of waiting calls of all callers. */
  get waiting(): number {
    return this.#waitingCalls;
  }

  /**
   * Gives a turn to a call, at once if a turn is free.
   *
   * @param key the name of the caller's queue; see {@link lineOf}
   * @param signal when the signal aborts, a waiting call leaves its queue, and the promise rejects with the signal's
   * reason
   * @throws DeputeError LIMIT_EXCEEDED if too many calls wait
   */
  enter(key: string, signal: AbortSignal): Turn | Promise<Turn> {
    const line = this.#lineOf(key);
    if (line.waiting.size === 0) {
      if (!this.#hasRoom(line)) this.#endLongTurns();
      if (line.waiting.size === 0 && this.#hasRoom(line)) {
        const turn = this.#begin(line);
        if (isLight(line)) this.#beginBesideLight();
        return turn;
      }
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
      this.#watchPause();
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
    const yields = this.#yields(line);
    if (yields && (line.running >= YIELDING_TURNS || this.#isPause())) return false;
    // Even if another caller has all turns, a caller without a turn gets one of the reserved turns.
    if (line.running === 0) return this.#running.size < 2 * maxTurns;
    if (this.#running.size >= maxTurns) return false;
    return yields || this.#lines.size === 1 || line.running < sharedTurns / this.#lines.size;
  }

  #yields(line: Line): boolean {
    return callsOf(line) > HEAVY_CALLS && this.#yieldsToLight(line);
  }

  #isPause(): boolean {
    return this.#running.size < this.#options.maxTurns && this.#options.clock.monotonic() < this.#pauseEndMs;
  }

  /**
   * Whether the caller yields if it is heavy: a light caller has calls in progress, or had a call in the last YIELD_MS.
   */
  #yieldsToLight(line: Line): boolean {
    const light = this.#lastLight;
    if (light === undefined || light === line || callsOf(light) > LIGHT_CALLS) return this.#lightLines > 0;
    return this.#lightLines > 0 || this.#options.clock.monotonic() - light.activeMs < YIELD_MS;
  }

  /** Changes the calls of one caller, and updates the number of light callers. */
  #change(line: Line, change: () => void): void {
    const wasLight = isLight(line);
    change();
    if (wasLight || isLight(line)) this.#lastLight = line;
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
    const wasLight = isLight(running.line);
    this.#change(running.line, () => {
      running.line.running -= 1;
    });
    if (wasLight && this.#lightLines === 0) this.#pause(PAUSE_AFTER_MS);
    this.#beginWaiting();
  }

  /** Begins one waiting call of each heavy caller together with a light caller's call, and then pauses. */
  #beginBesideLight(): void {
    this.#pause(PAUSE_DURING_MS);
    for (const line of this.#waiting.values()) {
      const hasRoom = line.running < YIELDING_TURNS && this.#running.size < 2 * this.#options.maxTurns;
      if (hasRoom && this.#yields(line)) this.#beginNext(line);
    }
  }

  #pause(ms: number): void {
    this.#pauseEndMs = this.#options.clock.monotonic() + ms;
    this.#cancelPauseTimer?.();
    this.#cancelPauseTimer = undefined;
    this.#watchPause();
  }

  /** Starts a timer that lets waiting calls begin at the end of the pause. */
  #watchPause(): void {
    const ms = Math.ceil(this.#pauseEndMs - this.#options.clock.monotonic());
    if (this.#waitingCalls === 0 || ms <= 0) return;
    this.#cancelPauseTimer ??= this.#options.timers.after(ms, () => {
      this.#cancelPauseTimer = undefined;
      this.#watchPause();
      this.#beginWaiting();
    });
  }

  /** While turns are free, lets waiting calls begin: one call of each caller, then the next call of each. */
  #beginWaiting(): void {
    for (const line of this.#waiting.values()) {
      if (this.#hasRoom(line)) this.#beginNext(line);
    }
  }

  #beginNext(line: Line): void {
    const [begin] = line.waiting;
    if (begin === undefined) return;
    this.#withdraw(line, begin);
    const turn = this.#begin(line);
    // The caller goes to the end of the queue of callers, so the loops over the queue continue with the next caller.
    if (this.#waiting.delete(line.key) && line.waiting.size > 0) this.#waiting.set(line.key, line);
    begin(turn);
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

  /** Starts a timer that ends turns which last too long, and repeats while calls wait. */
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
 * Returns the name of the queue in which a call waits: the caller's principal, or the client's address if no principal
 * is proven yet.
 *
 * @param principal empty if no principal is proven yet
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
