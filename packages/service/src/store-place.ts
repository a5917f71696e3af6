import { join } from "node:path";
import {
  MigrationError,
  StoreFileError,
  StoreKeyError,
  type StoreLocation,
  type StoreSettings,
} from "@depute/store";
import type { CommonSettings } from "./common-settings.ts";
import { SettingsError } from "./settings.ts";

/**
 * The parameters of `openStore` that the process sets, such as the location of the store and the listener for its
 * state.
 */
export type StorePlace = StoreLocation &
  Pick<
    StoreSettings,
    "onState" | "onOpen" | "onCommit" | "keys" | "timers" | "clock" | "isShared" | "callerOf"
  >;

/** Returns the location of the store with the given name: a file of the data folder, or a schema of the database. */
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

/**
 * Returns the error for a store that did not open. A store with other keys (StoreKeyError) or unknown tables
 * (MigrationError), and a file that cannot be opened (StoreFileError), give a SettingsError with a remedy for the
 * operator. Every other error is returned unchanged.
 *
 * @param service the service whose store did not open
 */
export function explainStore(
  error: unknown,
  service: string,
  { postgresUrl }: Pick<CommonSettings, "postgresUrl">,
): unknown {
  const elsewhere = postgresUrl === "" ? "DEPUTE_DATA_DIR" : "DEPUTE_POSTGRES_SCHEMA_PREFIX";
  if (error instanceof MigrationError) {
    const message = `the ${service} service cannot open its store: ${error.message}. Set ${elsewhere} to an empty place`;
    return new SettingsError(message, { cause: error });
  }
  if (error instanceof StoreFileError) return new SettingsError(error.message, { cause: error });
  if (!(error instanceof StoreKeyError)) return error;
  return new SettingsError(
    `${error.message}. Restore the file of that key (${error.key}.key in the data folder, or the file that its setting names); or start a ` +
      `separate platform with another ${elsewhere}; or, to replace the key permanently, start once with ` +
      `DEPUTE_REPLACE_KEYS=${error.key}`,
    { cause: error },
  );
}
