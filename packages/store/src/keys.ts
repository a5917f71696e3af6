import { row, text } from "./row.ts";

/** The keys without which a service cannot use the content of its store. */
export interface StoreKeys {
  /** Fingerprints by key name. A fingerprint distinguishes keys and reveals nothing of the key. */
  readonly fingerprints: Readonly<Record<string, string>>;
  /**
   * Names of the keys whose fingerprints may differ from the recorded ones. The store then records the new
   * fingerprints.
   */
  readonly replaced: readonly string[];
}

/** Thrown when the store was created with another key. The store then does not open. */
export class StoreKeyError extends Error {
  override readonly name = "StoreKeyError";
  /** The name of the key. */
  readonly key: string;

  constructor(key: string, recorded: string, fingerprint: string) {
    super(
      `the store was created with another ${key} key: its fingerprint is ${recorded}, not ${fingerprint}`,
    );
    this.key = key;
  }
}

/** The fingerprint that the store has recorded for one key. */
export interface RecordedKey {
  readonly name: string;
  readonly fingerprint: string;
}

/** A row that {@link READ_KEYS} returns. */
export const RECORDED_KEY = row<RecordedKey>({ name: text, fingerprint: text });

/** Reads all recorded keys. */
export const READ_KEYS = "SELECT name, fingerprint FROM store_keys";

/** The table of the fingerprints. */
export const KEYS_TABLE =
  "CREATE TABLE IF NOT EXISTS store_keys (name TEXT PRIMARY KEY, fingerprint TEXT NOT NULL)";

/** Records one key. The parameters are its name and its fingerprint. */
export const INSERT_KEY =
  "INSERT INTO store_keys (name, fingerprint) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET fingerprint = excluded.fingerprint";

/**
 * Returns the keys to record: keys without a record, and changed keys that may replace their record.
 *
 * @throws StoreKeyError for a key that differs from its record and may not replace it
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
