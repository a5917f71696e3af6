import { KEYS_TABLE, keysToRecord, NOTE_KEY, type RecordedKey, type StoreKeys } from "../keys.ts";
import type { StoreClient } from "./client.ts";
import { toPostgres } from "./dialect.ts";

/**
 * Compares the keys with those that the schema has recorded, if it is there. Changes nothing, so that whoever has the schema
 * is not disturbed by a process with other keys.
 *
 * @throws StoreKeyError
 */
export async function checkKeys(client: StoreClient, schema: string, keys: StoreKeys): Promise<void> {
  const { rows } = await client.query<{ found: string | null }>("SELECT to_regclass($1)::text AS found", [
    `${schema}.store_keys`,
  ]);
  if (rows[0]?.found !== null) keysToRecord(await recordedKeys(client), keys);
}

/**
 * Compares the keys, and records what is new. To be called by the owner of the schema.
 *
 * @throws StoreKeyError
 */
export async function recordKeys(client: StoreClient, keys: StoreKeys): Promise<void> {
  await client.query(KEYS_TABLE);
  for (const { name, fingerprint } of keysToRecord(await recordedKeys(client), keys)) {
    await client.query(toPostgres(NOTE_KEY), [name, fingerprint]);
  }
}

async function recordedKeys(client: StoreClient): Promise<RecordedKey[]> {
  return (await client.query<RecordedKey>("SELECT name, fingerprint FROM store_keys")).rows;
}
