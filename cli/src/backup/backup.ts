import { existsSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { type CommonSettings, mergeSettings, readWithSources, type SettingsTable } from "@depute/service";
import { snapshotFiles } from "@depute/store/maintenance";
import { readConfigFile } from "../config/config-file.ts";
import { CommandError, EXIT } from "../exit-codes.ts";
import { platformSettings } from "../modules.ts";
import { version } from "../version.ts";
import { copyInto, emptyFolder, namesOf, syncFolder, writeDurably } from "./files.ts";
import { readSealer } from "./key-secrets.ts";
import { described, describedContent, FORMAT, MANIFEST, type Manifest } from "./manifest.ts";
import { SEALED_KEYS, type Sealer, sealKeys } from "./sealed-keys.ts";

const OWN_SETTINGS = {
  to: { type: "string", default: "", help: "new folder of the backup", group: "Backup" },
  keysTo: {
    type: "string",
    default: "",
    help: "new folder of the keys, which belong to another place than the records; empty: keys are not copied",
    group: "Backup",
  },
  keys: {
    type: "bool",
    default: false,
    help: "whether the backup has the keys too, sealed by a passphrase or for a recipient",
    group: "Backup",
  },
  keysPassphraseFile: {
    type: "string",
    default: "",
    help: "file with the passphrase of sealed keys, of at least 12 characters; keep it apart from the backup",
    group: "Backup",
  },
  keysRecipientFile: {
    type: "string",
    default: "",
    help: "PEM file with the X25519 public key for which keys are sealed, so that this machine cannot open them",
    group: "Backup",
  },
} as const satisfies SettingsTable;

const DATABASE = ".sqlite";
const KEY = ".key";
/** The files that the backup command adds to a backup: the manifest and the sealed keys. */
const OWN_FILES: ReadonlySet<string> = new Set([MANIFEST, SEALED_KEYS]);

/**
 * `depute backup`: copies the records of a data folder, even while the platform runs. All copied databases show the
 * state at one instant.
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
  const sealer = sealerOf(settings as unknown as KeySettings);
  if (postgresUrl !== "")
    throw new CommandError(
      "the records are in Postgres; use pg_dump as docs/operations.md says, which copies all schemas at one instant",
    );
  if (to === "") throw new CommandError("name the folder of the backup with --to");
  if (keysTo !== "" && resolve(keysTo) === resolve(to))
    throw new CommandError(
      "--keys-to must not be the folder of the records; name another folder, so that the keys are kept apart",
    );
  const names = existsSync(dataDir) ? namesOf(dataDir) : [];
  const databases = names.filter((name) => name.endsWith(DATABASE));
  if (databases.length === 0)
    throw new CommandError(`${dataDir} has no records; name the data folder with --data-dir`);
  const advice = "name a new folder";
  const keys = names.filter((name) => name.endsWith(KEY));
  if (sealer !== undefined && keys.length === 0)
    throw new CommandError(
      `${dataDir} has no keys, because the settings name other places for them; omit --keys`,
    );
  emptyFolder(to, advice);
  if (keysTo !== "") emptyFolder(keysTo, advice);

  // Copies the other files of the data folder before the databases. So the checkpoint in the backup is not newer than
  // the revocation log in the backup. With a newer checkpoint, the service would refuse the restored store as an old
  // copy.
  const beside = names.filter((name) => isBeside(name, databases));
  for (const name of beside) copyInto(join(dataDir, name), to, name);
  if (keysTo !== "") for (const name of keys) copyInto(join(dataDir, name), keysTo, name);
  const contents = keys.map((name) => ({ name, content: readFileSync(join(dataDir, name)) }));
  if (sealer !== undefined) writeDurably(join(to, SEALED_KEYS), sealKeys(contents, sealer));
  await snapshotFiles(databases.map((name) => ({ source: join(dataDir, name), target: join(to, name) })));

  const manifest: Manifest = {
    format: FORMAT,
    version: version(),
    createTime: new Date().toISOString(),
    files: await Promise.all([...databases, ...beside].map((name) => described(name, join(to, name)))),
    keys: contents.map(({ name, content }) => describedContent(name, content)),
    ...(sealer !== undefined && { sealedKeys: await described(SEALED_KEYS, join(to, SEALED_KEYS)) }),
    settings: shownSettings(table, settings, sourceOf),
  };
  writeDurably(join(to, MANIFEST), `${JSON.stringify(manifest, undefined, 2)}\n`);
  for (const folder of keysTo === "" ? [to] : [to, keysTo]) syncFolder(folder);
  const bytes = manifest.files.reduce((sum, each) => sum + each.bytes, 0);
  console.log(`${to} has ${databases.length} databases and ${beside.length} other files, ${bytes} bytes`);
  const listed = keys.join(", ");
  if (sealer !== undefined) console.log(`${join(to, SEALED_KEYS)} has the keys ${listed}, sealed`);
  if (keysTo !== "") console.log(`${keysTo} has the keys ${listed}; keep it apart from the records`);
  if (sealer === undefined && keysTo === "")
    console.log(
      `the backup does not contain the keys ${listed}; seal them into the backup with --keys, or copy them with --keys-to`,
    );
  return EXIT.ok;
}

interface KeySettings {
  readonly keys: boolean;
  readonly keysPassphraseFile: string;
  readonly keysRecipientFile: string;
}

/**
 * Returns the passphrase or public key that seals the keys; undefined for a backup without sealed keys.
 *
 * @throws CommandError if the user sets `--keys` but names no file of a passphrase or public key, or names such a file
 * without `--keys`; the errors of readSealer
 */
function sealerOf({ keys, keysPassphraseFile, keysRecipientFile }: KeySettings): Sealer | undefined {
  const sealer = readSealer(keysPassphraseFile, keysRecipientFile);
  if (keys && sealer === undefined)
    throw new CommandError(
      "--keys needs a secret: name the file of a passphrase with --keys-passphrase-file, or of a public key with --keys-recipient-file",
    );
  if (!keys && sealer !== undefined)
    throw new CommandError("a secret for keys needs --keys; add --keys, or omit the secret");
  return sealer;
}

/**
 * Whether the backup copies a file of the data folder that is neither a database nor a key. The backup omits drafts
 * (`.new`), and the log, index and lock files of a database.
 */
function isBeside(name: string, databases: readonly string[]): boolean {
  if (name.endsWith(DATABASE) || name.endsWith(KEY) || name.endsWith(".new") || OWN_FILES.has(name))
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
