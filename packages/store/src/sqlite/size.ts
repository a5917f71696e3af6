import { stat } from "node:fs/promises";

/** Returns the size in bytes of a file with its write-ahead log; 0 if there is no file. */
export async function databaseFileSize(file: string): Promise<number> {
  const sizes = await Promise.all([sizeOf(file), sizeOf(`${file}-wal`)]);
  return sizes.reduce((sum, size) => sum + size, 0);
}

async function sizeOf(file: string): Promise<number> {
  try {
    return (await stat(file)).size;
  } catch (thrown) {
    if ((thrown as { code?: unknown }).code === "ENOENT") return 0;
    throw thrown;
  }
}
