/** The keys of a service that its store depends on. */
export interface StoreKeys {
  /** Fingerprints by the names of the keys. A fingerprint tells keys apart, and tells nothing of the key. */
  readonly fingerprints: Readonly<Record<string, string>>;
  /** Names of those that may take the place of the recorded ones. */
  readonly replaced: readonly string[];
}

/** The store was made with another key, so the store does not open. */
export class StoreKeyError extends Error {
  override readonly name = "StoreKeyError";
  /** The name of the key. */
  readonly key: string;

  constructor(key: string, recorded: string, present: string) {
    super(`the store was made with another ${key} key: ${recorded}, not ${present}`);
    this.key = key;
  }
}

/** What a store has recorded of a key. */
export interface RecordedKey {
  readonly name: string;
  readonly fingerprint: string;
}

/** The table of the fingerprints. */
export const KEYS_TABLE =
  "CREATE TABLE IF NOT EXISTS store_keys (name TEXT PRIMARY KEY, fingerprint TEXT NOT NULL)";

/** Notes one: name, fingerprint. */
export const NOTE_KEY =
  "INSERT INTO store_keys (name, fingerprint) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET fingerprint = excluded.fingerprint";

/**
 * The keys that are to be recorded, because the store knows none of that name or they may replace it.
 *
 * @throws StoreKeyError for one that differs from the recorded one
 */
export function keysToRecord(
  recorded: readonly RecordedKey[],
  { fingerprints, replaced }: StoreKeys,
): RecordedKey[] {
  const known = new Map(recorded.map(({ name, fingerprint }) => [name, fingerprint]));
  const news: RecordedKey[] = [];
  for (const [name, fingerprint] of Object.entries(fingerprints)) {
    const before = known.get(name);
    if (before === fingerprint) continue;
    if (before !== undefined && !replaced.includes(name)) throw new StoreKeyError(name, before, fingerprint);
    news.push({ name, fingerprint });
  }
  return news;
}
