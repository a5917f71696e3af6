import type { Clock } from "@depute/core";
import type { Pinned, Used } from "./rules/definition.ts";

/** Callers that definitions are remembered for, and definitions of all of them; the caller that listed longest ago goes first. */
const MAX_CALLERS = 10_000;
const MAX_DEFINITIONS = 200_000;
/** As long as a token is good for at most (DelegateOS 3.6). */
const REMEMBERED_MS = 86_400_000;

interface Shown {
  readonly digests: Map<string, string>;
  readonly until: number;
}

/** Which definitions were shown to whom, so that a request uses the one that was seen. */
export class Listed {
  readonly #clock: Clock;
  readonly #callers = new Map<string, Shown>();
  #definitions = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** @param digests of definitions, by the entries' names */
  add(caller: string, list: Pinned, digests: ReadonlyMap<string, string>): void {
    const known = this.#callers.get(caller)?.digests ?? new Map<string, string>();
    this.#forget(caller);
    for (const [name, digest] of digests) known.set(`${list} ${name}`, digest);
    this.#callers.set(caller, { digests: known, until: this.#clock.now() + REMEMBERED_MS });
    this.#definitions += known.size;
    for (const oldest of this.#callers.keys()) {
      if (this.#callers.size <= MAX_CALLERS && this.#definitions <= MAX_DEFINITIONS) break;
      this.#forget(oldest);
    }
  }

  /** Digest of the definition that was shown; undefined where none was. */
  of(caller: string, { list, name }: Used): string | undefined {
    const shown = this.#callers.get(caller);
    return shown === undefined || shown.until < this.#clock.now()
      ? undefined
      : shown.digests.get(`${list} ${name}`);
  }

  #forget(caller: string): void {
    this.#definitions -= this.#callers.get(caller)?.digests.size ?? 0;
    this.#callers.delete(caller);
  }
}
