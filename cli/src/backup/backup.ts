import { existsSync } from "node:fs";
import { join, resolve } from "node:path";
import { type CommonSettings, mergeSettings, readWithSources, type SettingsTable } from "@depute/service";
import { snapshotFiles } from "@depute/store/maintenance";
import { readConfigFile } from "../config/config-file.ts";
import { CommandError, EXIT } from "../exit-codes.ts";
import { platformSettings } from "../modules.ts";
import { version } from "../version.ts";
import { copyInto, emptyFolder, namesOf, syncFolder, writeDurably } from "./files.ts";
import { described, FORMAT, MANIFEST, type Manifest } from "./manifest.ts";

const OWN_SETTINGS = {
  to: { type: "string", default: "", help: "new folder of the backup", group: "Backup" },
  keysTo: {
    type: "string",
    default: "",
    help: "new folder of the keys, which belong to another place than the records; empty: keys are not copied",
    group: "Backup",
  },
} as const satisfies SettingsTable;

const DATABASE = ".sqlite";
const KEY = ".key";

/**
 * `depute backup`: copies the records of a data folder, even while the platform runs. All copied records show the state
 * at one instant.
 */
export async function backup(args: readonly string[]): Promise<number> {
  const table = platformSettings();
  const file = await readConfigFile(args, table);
  const { settings, sourceOf } = readWithSources(
    mergeSettings(table, OWN_SETTINGS),
    args,
    {
      name: "depute backup",
      description: "Copies the records of a data folder, also while the platform runs.",
    },
    file,
  );
  const { dataDir, postgresUrl } = settings as unknown as CommonSettings;
  const { to, keysTo } = settings as { to: string; keysTo: string };
  if (postgresUrl !== "")
    throw new CommandError(
      "the records are in Postgres; use pg_dump as docs/operations.md says, which copies all schemas at one instant",
    );
  if (to === "") throw new CommandError("name the folder of the backup with --to");
  if (keysTo !== "" && resolve(keysTo) === resolve(to))
    throw new CommandError(
      "--keys-to is the folder of the records; name another one, so that they can be kept apart",
    );
  const names = existsSync(dataDir) ? namesOf(dataDir) : [];
  const databases = names.filter((name) => name.endsWith(DATABASE));
  if (databases.length === 0)
    throw new CommandError(`${dataDir} has no records; name the data folder with --data-dir`);
  const advice = "name a new folder";
  emptyFolder(to, advice);
  if (keysTo !== "") emptyFolder(keysTo, advice);

  // The other files of the data folder are copied before the databases. So the checkpoint of the revocation log is not
  // newer than the copied log. Otherwise the service would take a restored store for an old store.
  const beside = names.filter((name) => isBeside(name, databases));
  for (const name of beside) copyInto(join(dataDir, name), to, name);
  const keys = names.filter((name) => name.endsWith(KEY));
  if (keysTo !== "") for (const name of keys) copyInto(join(dataDir, name), keysTo, name);
  await snapshotFiles(databases.map((name) => ({ source: join(dataDir, name), target: join(to, name) })));

  const manifest: Manifest = {
    format: FORMAT,
    version: version(),
    createTime: new Date().toISOString(),
    files: await Promise.all([...databases, ...beside].map((name) => described(name, join(to, name)))),
    keys: await Promise.all(keys.map((name) => described(name, join(dataDir, name)))),
    settings: shownSettings(table, settings, sourceOf),
  };
  writeDurably(join(to, MANIFEST), `${JSON.stringify(manifest, undefined, 2)}\n`);
  for (const folder of keysTo === "" ? [to] : [to, keysTo]) syncFolder(folder);
  const bytes = manifest.files.reduce((sum, each) => sum + each.bytes, 0);
  console.log(`${to} has ${databases.length} databases and ${beside.length} other files, ${bytes} bytes`);
  console.log(
    keysTo === ""
      ? `the keys ${keys.join(", ")} are not in it; copy them with --keys-to, to another place`
      : `${keysTo} has the keys ${keys.join(", ")}; keep it apart from the records`,
  );
  return EXIT.ok;
}

/**
 * Whether the backup includes a file that is neither a database nor a key. The log, index and lock of a database are
 * not included, and neither are drafts.
 */
function isBeside(name: string, databases: readonly string[]): boolean {
  if (name.endsWith(DATABASE) || name.endsWith(KEY) || name.endsWith(".new") || name === MANIFEST)
    return false;
  return !databases.some((database) => name.startsWith(`${database}-`));
}

function shownSettings(
  table: SettingsTable,
  settings: Readonly<Record<string, unknown>>,
  sourceOf: (name: string) => string,
): Record<string, unknown> {
  const given = Object.entries(table).filter(([name]) => sourceOf(name) !== "default");
  return Object.fromEntries(given.map(([name, { isSecret }]) => [name, isSecret ? "set" : settings[name]]));
}
