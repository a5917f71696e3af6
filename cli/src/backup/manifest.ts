import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { pipeline } from "node:stream/promises";

/** The name of the manifest in a backup. It is written last, so a backup without it is incomplete. */
export const MANIFEST = "manifest.json";

/** The version of the manifest's form. */
export const FORMAT = 1;

/** A file of a backup, by its name in the folder. */
export interface BackupFile {
  readonly name: string;
  readonly bytes: number;
  /** SHA-256 of the content, hexadecimal. */
  readonly sha256: string;
}

/** The content of a backup. */
export interface Manifest {
  readonly format: typeof FORMAT;
  /** The version of the program that made the backup. */
  readonly version: string;
  /** RFC 3339, UTC. */
  readonly createTime: string;
  readonly files: readonly BackupFile[];
  /** The platform's key files that the records need. Their digests tell keys apart and reveal nothing of them. */
  readonly keys: readonly BackupFile[];
  /** The file of the backup that has these keys, sealed; absent for a backup without keys. */
  readonly sealedKeys?: BackupFile;
  /** The settings that differ from their defaults, without secrets. A secret is "set". */
  readonly settings: Readonly<Record<string, unknown>>;
}

/** Returns size and digest of a file. */
export async function described(name: string, path: string): Promise<BackupFile> {
  const hash = createHash("sha256");
  let bytes = 0;
  await pipeline(createReadStream(path), async (chunks) => {
    for await (const chunk of chunks as AsyncIterable<Buffer>) {
      bytes += chunk.length;
      hash.update(chunk);
    }
  });
  return { name, bytes, sha256: hash.digest("hex") };
}

/** Returns size and digest of a content. */
export function describedContent(name: string, content: Uint8Array): BackupFile {
  return { name, bytes: content.length, sha256: createHash("sha256").update(content).digest("hex") };
}

/** A file name of a backup: no folders, and no name that a shell or SQLite could take for another. */
const NAME = /^[a-z0-9_-]+(\.[a-z0-9_-]+)*$/i;

/** @throws Error when the text is no manifest of this form */
export function parseManifest(text: string): Manifest {
  const value = JSON.parse(text) as Partial<Manifest> | null;
  if (value?.format !== FORMAT) throw new Error(`its format is not ${FORMAT}`);
  for (const list of [value.files, value.keys]) {
    if (!Array.isArray(list) || !list.every(isFile)) throw new Error("its list of files is malformed");
  }
  if (value.sealedKeys !== undefined && !isFile(value.sealedKeys))
    throw new Error("its sealed keys are malformed");
  return value as Manifest;
}

function isFile(file: unknown): boolean {
  const { name, bytes, sha256 } = (file ?? {}) as Partial<BackupFile>;
  return (
    typeof name === "string" && NAME.test(name) && Number.isSafeInteger(bytes) && typeof sha256 === "string"
  );
}
