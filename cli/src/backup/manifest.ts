import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { pipeline } from "node:stream/promises";

/**
 * The name of the manifest in a backup. The command writes the manifest last, so a backup without a manifest is
 * incomplete.
 */
export const MANIFEST = "manifest.json";

/** The version of the manifest's format. */
export const FORMAT = 1;

/** A file that the manifest lists: a file in the backup's folder, or a key file. The name contains no folder. */
export interface BackupFile {
  readonly name: string;
  readonly bytes: number;
  /** The SHA-256 digest of the content, in hexadecimal. */
  readonly sha256: string;
}

/** The manifest of a backup, which describes its content. */
export interface Manifest {
  readonly format: typeof FORMAT;
  /** The version of the program that made the backup. */
  readonly version: string;
  /** The time of the backup: RFC 3339, UTC. */
  readonly createTime: string;
  readonly files: readonly BackupFile[];
  /**
   * The platform's key files, which the copied records need. The backup itself may lack them. A digest identifies a key
   * without revealing it.
   */
  readonly keys: readonly BackupFile[];
  /** The file of the backup that contains the sealed key files; absent if the backup has no keys. */
  readonly sealedKeys?: BackupFile;
  /** The settings that flags, variables or the file of settings set. In place of a secret, the value is "set". */
  readonly settings: Readonly<Record<string, unknown>>;
}

/** Returns the manifest's entry for a file at a path: name, size and digest. */
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

/** Returns the manifest's entry for a file with this content: name, size and digest. */
export function describedContent(name: string, content: Uint8Array): BackupFile {
  return { name, bytes: content.length, sha256: createHash("sha256").update(content).digest("hex") };
}

/**
 * Matches the file names that a backup may contain: without a folder, and without characters that have a meaning for a
 * shell or SQLite.
 */
const NAME = /^[a-z0-9_-]+(\.[a-z0-9_-]+)*$/i;

/**
 * Parses the text of a manifest.
 *
 * @throws Error if the text is not a manifest of this format
 */
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
