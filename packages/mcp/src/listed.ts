import type { Clock } from "@depute/core";

/** Tokens that definitions are remembered for; the one that has not listed for longest goes first. */
const MAX_TOKENS = 10_000;
/** As long as a token is good for at most (DelegateOS 3.6). */
const REMEMBERED_MS = 86_400_000;

/** Which definitions of tools were shown to whom, so that a call is of the tool that was seen. */
export class Listed {
  readonly #clock: Clock;
  readonly #shown = new Map<string, { readonly digests: Map<string, string>; readonly until: number }>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** @param digests of definitions, by the tools' names */
  add(key: string, digests: ReadonlyMap<string, string>): void {
    const known = this.#shown.get(key)?.digests ?? new Map<string, string>();
    for (const [name, digest] of digests) known.set(name, digest);
    this.#shown.delete(key);
    this.#shown.set(key, { digests: known, until: this.#clock.now() + REMEMBERED_MS });
    const [oldest] = this.#shown.keys();
    if (this.#shown.size > MAX_TOKENS && oldest !== undefined) this.#shown.delete(oldest);
  }

  /** Digest of the definition that was shown; undefined where none was. */
  of(key: string, tool: string): string | undefined {
    const entry = this.#shown.get(key);
    return entry === undefined || entry.until < this.#clock.now() ? undefined : entry.digests.get(tool);
  }
}
