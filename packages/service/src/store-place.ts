import { join } from "node:path";
import type { StoreLocation, StoreSettings } from "@depute/store";
import type { CommonSettings } from "./common-settings.ts";

/** What `openStore` needs of the process: where the store is, and who is told whether it can be used. */
export type StorePlace = StoreLocation & Pick<StoreSettings, "onState">;

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
