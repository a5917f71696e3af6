import type { Migrations, StoreLocation } from "@depute/store";
import { migrations as auditMigrations } from "./audit/outbox-rows.ts";
import type { CommonSettings } from "./common-settings.ts";
import type { ServiceModule } from "./module.ts";
import { KEY_MIGRATIONS } from "./platform-keys.ts";
import { storeAt } from "./store-place.ts";

/** A store of the platform. */
export interface PlatformStore {
  /** The name of the store's file without `.sqlite`, or of its schema without the prefix. */
  readonly name: string;
  readonly location: StoreLocation;
  readonly migrations: Migrations;
}

/** Returns all stores that the modules use under the given settings. */
export function platformStores(
  modules: readonly ServiceModule[],
  settings: Pick<CommonSettings, "dataDir" | "postgresUrl" | "postgresSchemaPrefix" | "masterKeyFile">,
): PlatformStore[] {
  const hasKeyRows = settings.postgresUrl !== "" && settings.masterKeyFile !== "";
  const stores: [string, Migrations][] = [
    ...modules.flatMap(({ stores: own = {} }) => Object.entries(own)),
    ...modules
      .filter(({ audit }) => audit !== undefined)
      .map(({ name }): [string, Migrations] => [`audit_${name}`, auditMigrations]),
    ...(hasKeyRows ? [["platform", KEY_MIGRATIONS] as [string, Migrations]] : []),
  ];
  return stores.map(([name, migrations]) => ({ name, migrations, location: storeAt(settings, name) }));
}
