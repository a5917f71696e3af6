import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Schema } from "./current.ts";

const FOLDER = join(import.meta.dirname, "releases");

/** Returns the names of the releases whose schemas are recorded, oldest first, such as `v1`. */
export function releases(): string[] {
  if (!existsSync(FOLDER)) return [];
  const names = readdirSync(FOLDER).filter((name) => /^v\d+(\.\d+)*$/.test(name));
  return names.sort((a, b) => a.localeCompare(b, "en", { numeric: true }));
}

/** Returns a store's schema as recorded for a release. */
export function released(release: string, store: string): Schema {
  return JSON.parse(readFileSync(fileOf(release, store), "utf8"));
}

/** Records a store's schema for a release that has no record yet. */
export function record(release: string, store: string, schema: Schema): void {
  mkdirSync(join(FOLDER, release), { recursive: true });
  writeFileSync(fileOf(release, store), `${JSON.stringify(schema, null, 2)}\n`, { flag: "wx" });
}

function fileOf(release: string, store: string): string {
  return join(FOLDER, release, `${store}.json`);
}
