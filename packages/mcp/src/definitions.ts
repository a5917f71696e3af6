import type { Clock } from "@depute/core";
import { definitionDigest } from "./digest.ts";
import type { Pinned } from "./rules/definition.ts";

/** Pages of one list; more than a server can mean. */
const MAX_PAGES = 64;
/** Entries of one list that digests are held of. Later ones cannot be used. */
const MAX_ENTRIES = 10_000;
/** Lists that are begun again because the server announced a change meanwhile. */
const MAX_TRIES = 3;
/** Milliseconds between two notices to clients of a list that changes without an announcement. */
const NOTICE_MS = 10_000;

export interface DefinitionsOptions {
  readonly list: Pinned;
  readonly clock: Clock;
  /** Milliseconds for which a list is believed unless the server promises more; 0: each use lists. */
  readonly ttlMs: number;
  /** Whether the server's own promises are believed: `ttlMs` of its lists, and announcements of changes. */
  readonly trustsPromises: boolean;
  /** Whether the server announces changes of the list, and a subscription to them stands. */
  isAnnounced(): boolean;
  /** Asks the server for a page. Throws UpstreamError. */
  page(cursor: string | undefined): Promise<Readonly<Record<string, unknown>>>;
  /** Called when a list differs from the one before. */
  onChanged(): void;
}

interface Seen {
  digest: string;
  hasChanged: boolean;
}

/** The definitions of one list of one server: which digests it has now, and which of them have changed. */
export class Definitions {
  readonly #options: DefinitionsOptions;
  /** Every name that was ever listed, until there are too many. */
  readonly #seen = new Map<string, Seen>();
  #hasForgotten = false;
  #known: { readonly digests: Map<string, string>; readonly until: number } | undefined;
  #running: Promise<ReadonlyMap<string, string>> | undefined;
  #next: Promise<ReadonlyMap<string, string>> | undefined;
  #announced = 0;
  #names: ReadonlySet<string> | undefined;
  #noticedMs = Number.NEGATIVE_INFINITY;

  constructor(options: DefinitionsOptions) {
    this.#options = options;
  }

  /**
   * Digest of the definition that the server has now; undefined where it lists none of the name.
   *
   * @throws UpstreamError
   */
  async present(name: string): Promise<string | undefined> {
    const { clock, trustsPromises } = this.#options;
    const known = this.#known;
    if (known !== undefined && known.until > clock.now()) {
      // An announcement that is believed for ever is one of a subscription that still stands.
      const isSubscribed = trustsPromises && this.#options.isAnnounced();
      if (known.until !== Number.POSITIVE_INFINITY || isSubscribed) return known.digests.get(name);
    }
    return (await this.#fresh()).get(name);
  }

  /** Whether the server has listed different definitions under the name. */
  hasChanged(name: string): boolean {
    return this.#hasForgotten || this.#seen.get(name)?.hasChanged === true;
  }

  /** Takes note of entries that the server listed just now. @returns their digests by name */
  note(entries: readonly unknown[]): Map<string, string> {
    const digests = new Map(entries.flatMap(namedDigest));
    if (this.#see(digests)) this.#notice();
    // Only a whole list says which entries there are; a page of one says what has changed.
    for (const [name, digest] of digests) this.#known?.digests.set(name, digest);
    return digests;
  }

  /** The server announced a change, or is another one now. */
  forget(): void {
    this.#announced++;
    this.#known = undefined;
  }

  /** A list that begins after this call. Calls that come while one runs share the one that follows. */
  #fresh(): Promise<ReadonlyMap<string, string>> {
    if (this.#running === undefined) return this.#begin();
    this.#next ??= this.#running
      .catch(() => undefined)
      .then(() => {
        this.#next = undefined;
        return this.#begin();
      });
    return this.#next;
  }

  #begin(): Promise<ReadonlyMap<string, string>> {
    const running = this.#listAll().finally(() => {
      if (this.#running === running) this.#running = undefined;
    });
    this.#running = running;
    return running;
  }

  async #listAll(): Promise<ReadonlyMap<string, string>> {
    for (let left = MAX_TRIES; ; left--) {
      const announced = this.#announced;
      const { digests, ttlMs } = await this.#walk();
      const isCurrent = announced === this.#announced;
      if (!isCurrent && left > 1) continue;
      const before = this.#names;
      this.#names = new Set(digests.keys());
      const hasOthers = before !== undefined && !hasSame(before, this.#names);
      if (this.#see(digests) || hasOthers) this.#notice();
      if (isCurrent) this.#known = { digests, until: this.#believedUntil(ttlMs) };
      return digests;
    }
  }

  async #walk(): Promise<{ digests: Map<string, string>; ttlMs: number }> {
    const { list, page } = this.#options;
    const digests = new Map<string, string>();
    let ttlMs = Number.POSITIVE_INFINITY;
    let cursor: string | undefined;
    for (let pages = 0; pages < MAX_PAGES && digests.size < MAX_ENTRIES; pages++) {
      const result = await page(cursor);
      for (const entry of (result[list] ?? []) as unknown[]) {
        for (const [name, digest] of namedDigest(entry)) digests.set(name, digest);
      }
      ttlMs = Math.min(ttlMs, typeof result.ttlMs === "number" ? result.ttlMs : 0);
      if (typeof result.nextCursor !== "string") break;
      cursor = result.nextCursor;
    }
    return { digests, ttlMs };
  }

  #believedUntil(promisedMs: number): number {
    const { clock, ttlMs, trustsPromises, isAnnounced } = this.#options;
    if (!trustsPromises) return clock.now() + ttlMs;
    if (isAnnounced()) return Number.POSITIVE_INFINITY;
    return clock.now() + (promisedMs > 0 ? promisedMs : ttlMs);
  }

  /** @returns whether one of them was another before */
  #see(digests: ReadonlyMap<string, string>): boolean {
    let isOther = false;
    for (const [name, digest] of digests) {
      const seen = this.#seen.get(name);
      if (seen === undefined) {
        if (this.#seen.size >= MAX_ENTRIES) this.#hasForgotten = true;
        else this.#seen.set(name, { digest, hasChanged: false });
      } else if (seen.digest !== digest) {
        isOther = true;
        seen.digest = digest;
        seen.hasChanged = true;
      }
    }
    return isOther;
  }

  /** Clients that hear of a change list again; a list that never stays the same must not keep them at it. */
  #notice(): void {
    const nowMs = this.#options.clock.now();
    if (nowMs < this.#noticedMs + NOTICE_MS) return;
    this.#noticedMs = nowMs;
    this.#options.onChanged();
  }
}

function hasSame(one: ReadonlySet<string>, other: ReadonlySet<string>): boolean {
  return one.size === other.size && [...one].every((name) => other.has(name));
}

function namedDigest(entry: unknown): [string, string][] {
  const { name } = (entry ?? {}) as { name?: unknown };
  if (typeof name !== "string") return [];
  try {
    return [[name, definitionDigest(entry as Record<string, unknown>)]];
  } catch {
    // A definition that has no canonical form has no digest, so that the entry cannot be used.
    return [];
  }
}
