import type { Clock } from "@depute/core";
import type { Pinned, Used } from "./rules/definition.ts";

/**
 * Maximum number of callers whose lists are stored. MAX_DEFINITIONS is the maximum number of definitions of all callers
 * together. If either maximum is exceeded, the caller with the oldest list is dropped first.
 */
const MAX_CALLERS = 10_000;
const MAX_DEFINITIONS = 200_000;
/** Milliseconds for which a caller's list is stored: the maximum lifetime of a token (DelegateOS 3.6). */
const REMEMBERED_MS = 86_400_000;

interface CallerDefinitions {
  readonly digests: Map<string, string>;
  readonly until: number;
}

/**
 * Stores the definitions that each caller has listed. The proxy then refuses a request on an entry whose definition
 * differs from the listed one.
 */
export class Listed {
  readonly #clock: Clock;
  readonly #callers = new Map<string, CallerDefinitions>();
  #definitions = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** @param digests digests of the definitions, by the names of the entries */
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

  /**
   * Returns the digest of the definition that the proxy has shown to the caller; undefined if the proxy has shown
   * none within REMEMBERED_MS.
   */
  of(caller: string, { list, name }: Used): string | undefined {
    const listed = this.#callers.get(caller);
    return listed === undefined || listed.until < this.#clock.now()
      ? undefined
      : listed.digests.get(`${list} ${name}`);
  }

  #forget(caller: string): void {
    this.#definitions -= this.#callers.get(caller)?.digests.size ?? 0;
    this.#callers.delete(caller);
  }
}
