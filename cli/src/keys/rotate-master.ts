import { existsSync, renameSync } from "node:fs";
import { join } from "node:path";
import {
  type CommonSettings,
  KEY_MIGRATIONS,
  keyFiles,
  mergeSettings,
  openSeedFile,
  PLATFORM_KEYS,
  type ResealOptions,
  readWithSources,
  resealStore,
  type SettingsTable,
  storeAt,
  UnopenedSecretError,
} from "@depute/service";
import { StoreKeyError } from "@depute/store";
import { migrations } from "@depute/tokens/schema";
import { SEALED_TABLES } from "@depute/tokens/sealed";
import { syncFolder } from "../backup/files.ts";
import { readConfigFile } from "../config/config-file.ts";
import { CommandError, EXIT } from "../exit-codes.ts";
import { platformSettings } from "../modules.ts";

const OWN_SETTINGS = {
  newMasterKeyFile: {
    type: "string",
    default: "",
    help: "file of the new master key, where DEPUTE_MASTER_KEY_FILE names the old one",
    group: "Rotation",
  },
} as const satisfies SettingsTable;

const DESCRIPTION = "Seals the platform's secrets with a new master key, while the platform is stopped.";
const DANGER = "its readers can open all sealed keys";
/** The name of the new key's file in the data folder, until all secrets are sealed with the new key. */
const NEXT = "master.next.key";
const MASTER = "master.key";

/**
 * `depute keys rotate-master`: seals all secrets with a new master key. The operator must stop the platform first. If a
 * run was interrupted, the next run continues with the same new key.
 */
export async function rotateMaster(args: readonly string[]): Promise<number> {
  const table = platformSettings();
  const file = await readConfigFile(args, table);
  const { settings } = readWithSources(
    mergeSettings(table, OWN_SETTINGS),
    args,
    { name: "depute keys rotate-master", description: DESCRIPTION },
    file,
  );
  const common = settings as unknown as CommonSettings;
  const { newMasterKeyFile } = settings as { newMasterKeyFile: string };
  const { dataDir, masterKeyFile, postgresUrl } = common;
  assertFiles(common, newMasterKeyFile);
  const from = keyFiles(dataDir, masterKeyFile, warn).openMaster();
  const to = openSeedFile({ dataDir, name: NEXT, configured: newMasterKeyFile, danger: DANGER, warn });
  if (Buffer.compare(from, to) === 0)
    throw new CommandError("the new master key equals the old key; create another key");

  const stores: Pick<ResealOptions, "place" | "migrations" | "tables">[] = [
    { place: storeAt(common, "tokens"), migrations, tables: SEALED_TABLES },
  ];
  // The database can contain keys of the platform only if DEPUTE_MASTER_KEY_FILE is set.
  if (postgresUrl !== "" && masterKeyFile !== "")
    stores.push({ place: storeAt(common, "platform"), migrations: KEY_MIGRATIONS, tables: [PLATFORM_KEYS] });
  let count = 0;
  const onError = (error: unknown, message: string) => console.error(`depute: ${message}: ${error}`);
  for (const store of stores) {
    count += await resealStore({ ...store, from, to, onError }).catch((error) => {
      throw explained(error);
    });
  }
  if (newMasterKeyFile === "") {
    renameSync(join(dataDir, NEXT), join(dataDir, MASTER));
    syncFolder(dataDir);
    console.log(`${count} secrets are sealed with the new key ${join(dataDir, MASTER)}`);
  } else {
    console.log(
      `${count} secrets are sealed with the new key; start with DEPUTE_MASTER_KEY_FILE=${newMasterKeyFile}`,
    );
  }
  console.log("backups that were made before need the old key");
  return EXIT.ok;
}

function assertFiles({ dataDir, masterKeyFile, postgresUrl }: CommonSettings, newFile: string): void {
  if (masterKeyFile !== "" && newFile === "")
    throw new CommandError(
      "DEPUTE_MASTER_KEY_FILE names the old key; name the new one with --new-master-key-file",
    );
  if (masterKeyFile === "" && newFile !== "")
    throw new CommandError(`the old key is in the data folder; leave out --new-master-key-file`);
  if (masterKeyFile === "" && !existsSync(join(dataDir, MASTER)))
    throw new CommandError(`${dataDir} has no ${MASTER}; name the data folder with --data-dir`);
  if (postgresUrl === "" && !existsSync(join(dataDir, "tokens.sqlite")))
    throw new CommandError(`${dataDir} has no records; name the data folder with --data-dir`);
}

function warn(message: string): void {
  console.error(`depute: ${message}`);
}

function explained(error: unknown): unknown {
  if (!(error instanceof StoreKeyError || error instanceof UnopenedSecretError)) return error;
  const advice = "no record of this store was changed; set the master key that sealed the records";
  return new CommandError(`${error.message}; ${advice}`);
}
