import { StoreFileError } from "../errors.ts";

const REMEDIES = {
  damaged: "it is damaged, or is not a database; restore a backup, or name another data folder",
  readOnly:
    "it cannot be written; let this user write the file and its folder, and mount the disk for writing",
  full: "the disk is full, or a quota or the maximum file size is reached; free space, then start again",
  broken: "the disk reports errors; read the log of the operating system",
  noFile: "it is not a file that this user can open; move it, or name another data folder",
} as const;

/** The remedies by the primary result code of SQLite (sqlite.org/rescode.html). */
const BY_RESULT = new Map<number, keyof typeof REMEDIES>([
  [3, "readOnly"], // PERM
  [8, "readOnly"], // READONLY
  [10, "broken"], // IOERR
  [11, "damaged"], // CORRUPT
  [13, "full"], // FULL
  [14, "noFile"], // CANTOPEN
  [26, "damaged"], // NOTADB
]);

/** The remedies by the error code of the operating system. */
const BY_CODE = new Map<string, keyof typeof REMEDIES>([
  ["EACCES", "readOnly"],
  ["EPERM", "readOnly"],
  ["EROFS", "readOnly"],
  ["ENOSPC", "full"],
  ["EDQUOT", "full"],
  ["EFBIG", "full"],
  ["EIO", "broken"],
  ["EISDIR", "noFile"],
  ["ENOTDIR", "noFile"],
  ["ELOOP", "noFile"],
]);

/**
 * Extended result codes of a failed write, and of a failed extension of the log's index. The most frequent cause is a
 * full disk.
 */
const FAILED_WRITES = new Set([778, 4874]);

/** Returns the error for a database file that did not open, with its remedy. Other errors are returned unchanged. */
export function openFailure(file: string, error: unknown): unknown {
  const cause = (error instanceof Error && hasCode(error.cause) ? error.cause : error) as Codes;
  const { errcode, code } = cause;
  const kind =
    errcode === undefined
      ? BY_CODE.get(code ?? "")
      : FAILED_WRITES.has(errcode)
        ? "full"
        : BY_RESULT.get(errcode & 0xff);
  if (kind === undefined) return error;
  return new StoreFileError(`${file} cannot be opened (${cause.message}): ${REMEDIES[kind]}`, {
    cause: error,
  });
}

interface Codes extends Error {
  /** The extended result code of SQLite. */
  readonly errcode?: number;
  readonly code?: string;
}

function hasCode(error: unknown): boolean {
  return error instanceof Error && "errcode" in error;
}
