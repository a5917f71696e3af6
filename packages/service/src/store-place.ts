import { join } from "node:path";
import { StoreKeyError, type StoreLocation, type StoreSettings } from "@depute/store";
import type { CommonSettings } from "./common-settings.ts";
import { SettingsError } from "./settings.ts";

/** What `openStore` needs of the process: where the store is, and who is told whether it can be used. */
export type StorePlace = StoreLocation & Pick<StoreSettings, "onState" | "keys">;

/** Where the store of that name is: a file of the data folder, or a schema of the database. */
export function storeAt(
  {
    dataDir,
    postgresUrl,
    postgresSchemaPrefix,
  }: Pick<CommonSettings, "dataDir" | "postgresUrl" | "postgresSchemaPrefix">,
  name: string,
): StoreLocation {
  return postgresUrl === ""
    ? { file: join(dataDir, `${name}.sqlite`) }
    : { postgres: postgresUrl, schema: `${postgresSchemaPrefix}_${name}` };
}

/** What the operator can do about a store that was made with other keys; every other error as it is. */
export function explainStoreKeys(
  error: unknown,
  { postgresUrl }: Pick<CommonSettings, "postgresUrl">,
): unknown {
  if (!(error instanceof StoreKeyError)) return error;
  const elsewhere = postgresUrl === "" ? "DEPUTE_DATA_DIR" : "DEPUTE_POSTGRES_SCHEMA_PREFIX";
  return new SettingsError(
    `${error.message}. Put that key's file back (${error.key}.key of the data folder, or where its setting points to); or keep a ` +
      `platform of its own elsewhere, by another ${elsewhere}; or, to replace the key for good, start once with ` +
      `DEPUTE_REPLACE_KEYS=${error.key}`,
    { cause: error },
  );
}
