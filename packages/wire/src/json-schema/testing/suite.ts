import { existsSync, readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import type { Dialect } from "../meta-schemas.ts";

/** A case of the JSON Schema Test Suite: a value, and whether the schema of its group accepts the value. */
export interface SuiteCase {
  readonly description: string;
  readonly data: unknown;
  readonly valid: boolean;
}

/** A schema of the suite, and the cases that test it. */
export interface SuiteGroup {
  /** Path of the group's file within the draft's folder, such as `optional/format/date.json`. */
  readonly file: string;
  readonly description: string;
  readonly schema: unknown;
  readonly tests: readonly SuiteCase[];
}

const FOLDERS: Record<Dialect, string> = { "draft-07": "draft7", "2020-12": "draft2020-12" };

/** The folder into which `npm run schema-suite` copies the suite's `tests`. */
export const SUITE_FOLDER = fileURLToPath(
  new URL("../../../../../.generated/json-schema-test-suite/", import.meta.url),
);

/** Whether the suite is installed on this machine. */
export const hasSuite = existsSync(SUITE_FOLDER);

/** Returns all groups of a draft, including the optional ones, in the order of their files' names. */
export function suiteOf(dialect: Dialect): SuiteGroup[] {
  const folder = `${SUITE_FOLDER}${FOLDERS[dialect]}`;
  const files = readdirSync(folder, { recursive: true })
    .map(String)
    .filter((file) => file.endsWith(".json"));
  return files.sort().flatMap((file) => {
    const groups = JSON.parse(readFileSync(`${folder}/${file}`, "utf8")) as Omit<SuiteGroup, "file">[];
    return groups.map((group) => ({ ...group, file }));
  });
}
