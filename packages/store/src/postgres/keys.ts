import {
  INSERT_KEY,
  KEYS_TABLE,
  keysToRecord,
  READ_KEYS,
  RECORDED_KEY,
  type RecordedKey,
  type StoreKeys,
} from "../keys.ts";
import type { Cells } from "../row.ts";
import type { StoreClient } from "./client.ts";
import { toPostgres } from "./dialect.ts";

/**
 * Compares the keys with the keys that an existing schema has recorded. The comparison changes nothing, so a process
 * with wrong keys never disturbs the schema's owner.
 *
 * @throws StoreKeyError; node-postgres' own errors
 */
export async function checkKeys(client: StoreClient, schema: string, keys: StoreKeys): Promise<void> {
  const { rows } = await client.query<{ found: string | null }>("SELECT to_regclass($1)::text AS found", [
    `${schema}.store_keys`,
  ]);
  if (rows[0]?.found !== null) keysToRecord(await recordedKeys(client), keys);
}

/**
 * Compares the keys with the recorded keys, and records new keys. Only the process that owns the schema may
 * call this function.
 *
 * @throws StoreKeyError; node-postgres' own errors
 */
export async function recordKeys(client: StoreClient, keys: StoreKeys): Promise<void> {
  await client.query(KEYS_TABLE);
  for (const { name, fingerprint } of keysToRecord(await recordedKeys(client), keys)) {
    await client.query(toPostgres(INSERT_KEY), [name, fingerprint]);
  }
}

async function recordedKeys(client: StoreClient): Promise<RecordedKey[]> {
  return (await client.query<Cells>(READ_KEYS)).rows.map(RECORDED_KEY.check);
}
