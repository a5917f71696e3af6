import type { Clock } from "@depute/core";
import { definitionDigest } from "./digest.ts";
import type { Pinned } from "./rules/definition.ts";
import { type ToolInput, ToolInputs } from "./tool-inputs.ts";

/** Maximum number of pages that the proxy reads of one list. The entries of later pages cannot be used. */
const MAX_PAGES = 64;
/** Maximum number of digests that are stored for one list. The entries beyond this number cannot be used. */
const MAX_ENTRIES = 10_000;
/**
 * Maximum number of attempts to read a list. An attempt is repeated if the server announces a change while the list is
 * read.
 */
const MAX_TRIES = 3;
/**
 * Minimum number of milliseconds between two change notices to clients. The limit matters for a list that changes often
 * without announcements.
 */
const NOTICE_MS = 10_000;

export interface DefinitionsOptions {
  readonly list: Pinned;
  readonly clock: Clock;
  /**
   * Milliseconds for which a list is valid, unless `trustsPromises` is true and the server states another time or
   * announces changes. With 0, the list is read before each use.
   */
  readonly ttlMs: number;
  /**
   * Whether the proxy relies on the server's own statements: the `ttlMs` of the server's lists, and its announcements
   * of changes.
   */
  readonly trustsPromises: boolean;
  /** Whether the server announces changes of the list through an open subscription. */
  isAnnounced(): boolean;
  /** Reads a page from the server. Throws UpstreamError. */
  page(cursor: string | undefined): Promise<Readonly<Record<string, unknown>>>;
  /** Called when a list differs from the previous one, but at most once in NOTICE_MS. */
  onChanged(): void;
}

interface DefinitionRecord {
  digest: string;
  hasChanged: boolean;
}

/** The definitions in one list of one server: their current digests, and which of them have changed. */
export class Definitions {
  readonly #options: DefinitionsOptions;
  /** All names that the server has listed since the start, up to MAX_ENTRIES. */
  readonly #seenDefinitions = new Map<string, DefinitionRecord>();
  /** The inputs that the listed tools declare, up to MAX_ENTRIES. */
  readonly #inputs = new ToolInputs(MAX_ENTRIES);
  #hasForgotten = false;
  #knownDigests: { readonly digests: Map<string, string>; readonly until: number } | undefined;
  #running: Promise<ReadonlyMap<string, string>> | undefined;
  #next: Promise<ReadonlyMap<string, string>> | undefined;
  #announced = 0;
  #names: ReadonlySet<string> | undefined;
  #noticedMs = Number.NEGATIVE_INFINITY;

  constructor(options: DefinitionsOptions) {
    this.#options = options;
  }

  /**
   * Returns the digest of the server's current definition; undefined if the server does not list the name.
   *
   * @throws UpstreamError
   */
  async currentDigest(name: string): Promise<string | undefined> {
    const { clock, trustsPromises } = this.#options;
    const known = this.#knownDigests;
    if (known !== undefined && known.until > clock.now()) {
      // A cache without an end of validity is valid only while the subscription is open.
      const isSubscribed = trustsPromises && this.#options.isAnnounced();
      if (known.until !== Number.POSITIVE_INFINITY || isSubscribed) return known.digests.get(name);
    }
    return (await this.#fresh()).get(name);
  }

  /**
   * Whether the server has listed different definitions under this name. Also true if more than MAX_ENTRIES names were
   * listed, because not all are recorded.
   */
  hasChanged(name: string): boolean {
    return this.#hasForgotten || this.#seenDefinitions.get(name)?.hasChanged === true;
  }

  /** Returns the input that a tool declares, as it was last read from the server; undefined for an unlisted tool. */
  input(name: string): ToolInput | undefined {
    return this.#inputs.of(name);
  }

  /**
   * Records entries that the server has just listed.
   *
   * @returns their digests by name
   */
  note(entries: readonly unknown[]): Map<string, string> {
    const digests = new Map(entries.flatMap((entry) => this.#read(entry)));
    if (this.#see(digests)) this.#notice();
    // A page updates the digests of its entries. A page removes no digest, because only a complete list shows
    // which entries no longer exist.
    for (const [name, digest] of digests) this.#knownDigests?.digests.set(name, digest);
    return digests;
  }

  /**
   * Drops the cached list. Called when the server announces a change, or after a new server process has replaced the
   * old one.
   */
  forget(): void {
    this.#announced++;
    this.#knownDigests = undefined;
  }

  /**
   * Reads the list, and returns the result of a read that begins after this call. Calls that arrive during a read share
   * the next read.
   */
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
    for (let remainingTries = MAX_TRIES; ; remainingTries--) {
      const announced = this.#announced;
      const { digests, ttlMs } = await this.#walk();
      const isCurrent = announced === this.#announced;
      if (!isCurrent && remainingTries > 1) continue;
      const before = this.#names;
      this.#names = new Set(digests.keys());
      const hasOthers = before !== undefined && !hasSame(before, this.#names);
      if (this.#see(digests) || hasOthers) this.#notice();
      if (isCurrent) this.#knownDigests = { digests, until: this.#believedUntil(ttlMs) };
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
        for (const [name, digest] of this.#read(entry)) digests.set(name, digest);
      }
      ttlMs = Math.min(ttlMs, typeof result.ttlMs === "number" ? result.ttlMs : 0);
      if (typeof result.nextCursor !== "string") break;
      cursor = result.nextCursor;
    }
    this.#inputs.keep(digests);
    return { digests, ttlMs };
  }

  /**
   * Returns the name and the digest of an entry; nothing if the entry has no canonical form. Stores the input that a
   * tool declares.
   */
  #read(entry: unknown): [string, string][] {
    const named = namedDigest(entry);
    const { list } = this.#options;
    for (const [name, digest] of list === "tools" ? named : []) {
      this.#inputs.note(name, digest, entry as { inputSchema?: unknown; execution?: unknown });
    }
    return named;
  }

  #believedUntil(promisedMs: number): number {
    const { clock, ttlMs, trustsPromises, isAnnounced } = this.#options;
    if (!trustsPromises) return clock.now() + ttlMs;
    if (isAnnounced()) return Number.POSITIVE_INFINITY;
    return clock.now() + (promisedMs > 0 ? promisedMs : ttlMs);
  }

  /**
   * Records the digests of listed entries.
   *
   * @returns whether a digest differs from an earlier one under the same name
   */
  #see(digests: ReadonlyMap<string, string>): boolean {
    let isOther = false;
    for (const [name, digest] of digests) {
      const seenRecord = this.#seenDefinitions.get(name);
      if (seenRecord === undefined) {
        if (this.#seenDefinitions.size >= MAX_ENTRIES) this.#hasForgotten = true;
        else this.#seenDefinitions.set(name, { digest, hasChanged: false });
      } else if (seenRecord.digest !== digest) {
        isOther = true;
        seenRecord.digest = digest;
        seenRecord.hasChanged = true;
      }
    }
    return isOther;
  }

  /**
   * Notifies clients of a change, at most once in NOTICE_MS. Clients list again after each notice. Without this limit,
   * a list that changes all the time would cause endless work.
   */
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
    // A definition without a canonical form gets no digest, so its entry cannot be used.
    return [];
  }
}
