import { existsSync, mkdirSync, readFileSync, renameSync, rmSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { type CommonSettings, mergeSettings, readSettings, type SettingsTable } from "@depute/service";
import { checkFile } from "@depute/store/maintenance";
import { readConfigFile } from "../config/config-file.ts";
import { CommandError, EXIT } from "../exit-codes.ts";
import { platformSettings } from "../modules.ts";
import { copyInto, emptyFolder, syncFolder, writeDurably } from "./files.ts";
import { readOpener } from "./key-secrets.ts";
import {
  type BackupFile,
  described,
  describedContent,
  MANIFEST,
  type Manifest,
  parseManifest,
} from "./manifest.ts";
import {
  type KeyContent,
  MAX_SEALED_BYTES,
  type Opener,
  openKeys,
  SEALED_KEYS,
  SealedKeysError,
} from "./sealed-keys.ts";

const OWN_SETTINGS = {
  from: { type: "string", default: "", help: "folder of the backup", group: "Restore" },
  keysFrom: {
    type: "string",
    default: "",
    help: "folder of the keys; empty: keys are sealed in the backup, or elsewhere, by settings such as --root-key-file",
    group: "Restore",
  },
  keysPassphraseFile: {
    type: "string",
    default: "",
    help: "file with the passphrase that opens the backup's sealed keys",
    group: "Restore",
  },
  keysIdentityFile: {
    type: "string",
    default: "",
    help: "PEM file with the X25519 private key that opens the backup's sealed keys",
    group: "Restore",
  },
} as const satisfies SettingsTable;

/**
 * `depute restore`: checks a backup against its manifest, and copies it to a new data folder. The folder appears as a
 * whole, or not at all.
 */
export async function restore(args: readonly string[]): Promise<number> {
  const table = platformSettings();
  const settings = readSettings(
    mergeSettings(table, OWN_SETTINGS),
    args,
    { name: "depute restore", description: "Checks a backup, and copies it to a new data folder." },
    await readConfigFile(args, table),
  );
  const { dataDir, postgresUrl } = settings as unknown as CommonSettings;
  const { from, keysFrom, ...secrets } = settings as unknown as RestoreSettings;
  const opener = readOpener(secrets.keysPassphraseFile, secrets.keysIdentityFile);
  if (postgresUrl !== "")
    throw new CommandError(
      "the records belong to Postgres; restore them with pg_restore as docs/operations.md says",
    );
  if (from === "") throw new CommandError("name the folder of the backup with --from");
  const manifest = readManifest(from);
  await checkFiles(from, manifest.files);
  if (keysFrom !== "") await checkFiles(keysFrom, manifest.keys);
  if (manifest.sealedKeys !== undefined) await checkFiles(from, [manifest.sealedKeys]);
  if (opener !== undefined && keysFrom !== "")
    throw new CommandError(
      "--keys-from and a secret of sealed keys exclude one another; set only one of them",
    );
  const opened = opener === undefined ? [] : openSealed(from, manifest, opener);
  emptyFolder(dataDir, "name a new folder with --data-dir, or move the old one away");

  const draft = `${resolve(dataDir)}.restoring`;
  rmSync(draft, { recursive: true, force: true });
  mkdirSync(draft, { mode: 0o700 });
  try {
    for (const { name } of manifest.files) copyInto(join(from, name), draft, name);
    if (keysFrom !== "") for (const { name } of manifest.keys) copyInto(join(keysFrom, name), draft, name);
    for (const { name, content } of opened) writeDurably(join(draft, name), content);
    for (const { name } of manifest.files) if (name.endsWith(".sqlite")) checkFile(join(draft, name));
    syncFolder(draft);
    renameSync(draft, dataDir);
    syncFolder(dirname(resolve(dataDir)));
  } catch (error) {
    rmSync(draft, { recursive: true, force: true });
    throw error;
  }
  console.log(`${dataDir} has the records of ${manifest.createTime}, made by version ${manifest.version}`);
  const keys = manifest.keys.map(({ name }) => name).join(", ");
  if (keysFrom === "" && opener === undefined && keys !== "")
    console.log(
      manifest.sealedKeys === undefined
        ? `before the start, copy the keys ${keys} into this folder, or name their files by their settings`
        : `this folder has no keys: ${keys} are sealed in ${join(from, SEALED_KEYS)}; restore again with their secret, or name the key files by their settings`,
    );
  const names = Object.keys(manifest.settings);
  if (names.length > 0)
    console.log(`the platform had these settings: ${names.join(", ")}; see ${join(from, MANIFEST)}`);
  return EXIT.ok;
}

interface RestoreSettings {
  readonly from: string;
  readonly keysFrom: string;
  readonly keysPassphraseFile: string;
  readonly keysIdentityFile: string;
}

/**
 * Opens the sealed keys of a backup, and compares them with the backup's manifest.
 *
 * @throws CommandError if the backup has no sealed keys, their file is too large or was changed, the secret is wrong,
 * or the manifest names other keys
 */
function openSealed(folder: string, manifest: Manifest, opener: Opener): readonly KeyContent[] {
  const path = join(folder, SEALED_KEYS);
  if (manifest.sealedKeys === undefined)
    throw new CommandError(`${folder} has no sealed keys; omit the secret, or use a backup made with --keys`);
  if (manifest.sealedKeys.bytes > MAX_SEALED_BYTES)
    throw new CommandError(`${path} is larger than ${MAX_SEALED_BYTES} bytes; use another backup`);
  try {
    const opened = openKeys(readFileSync(path, "utf8"), opener);
    const found = opened.map(({ name, content }) => describedContent(name, content));
    if (JSON.stringify(found) === JSON.stringify(manifest.keys.map(plain))) return opened;
  } catch (error) {
    if (error instanceof SealedKeysError) throw new CommandError(`${path}: ${error.message}`);
    throw error;
  }
  throw new CommandError(`${path} has other keys than the manifest names; use another backup`);
}

const plain = ({ name, bytes, sha256 }: BackupFile): BackupFile => ({ name, bytes, sha256 });

function readManifest(folder: string): Manifest {
  const path = join(folder, MANIFEST);
  if (!existsSync(path))
    throw new CommandError(`${folder} has no ${MANIFEST}, so the backup is not complete`);
  try {
    return parseManifest(readFileSync(path, "utf8"));
  } catch (error) {
    throw new CommandError(`${path} cannot be used: ${(error as Error).message}`);
  }
}

async function checkFiles(folder: string, files: readonly BackupFile[]): Promise<void> {
  for (const { name, bytes, sha256 } of files) {
    const path = join(folder, name);
    if (!existsSync(path)) throw new CommandError(`${path} is missing; the manifest names it`);
    const found = await described(name, path);
    if (found.bytes !== bytes || found.sha256 !== sha256)
      throw new CommandError(
        `${path} is not the file of the manifest: its digest differs; use another backup`,
      );
  }
}
