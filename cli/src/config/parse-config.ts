import {
  type FileValues,
  type SettingsTable,
  secretFileName,
  secretInFile,
  settingInFile,
  valueInFile,
} from "@depute/service";
import { isMap, isPair, isScalar, LineCounter, type Pair, parseDocument } from "yaml";
import { nearest } from "../parse.ts";

/** The setting that names the file of settings. The file itself cannot contain this setting. */
const OWN_NAME = "configFile";

/** The valid values in a file of settings, and the reasons why the invalid values are invalid. */
export interface ParsedConfig {
  readonly values: FileValues;
  /** The problems in the order of the file, each as `FILE:LINE: NAME: reason`; without `NAME` for malformed YAML. */
  readonly problems: readonly string[];
}

/**
 * Parses the text of a file of settings.
 *
 * @param path the file's name for messages
 * @param isPrivate whether only the owner can read the file; only then may it contain secrets
 */
export function parseConfig(
  path: string,
  source: string,
  table: SettingsTable,
  isPrivate: boolean,
): ParsedConfig {
  const lines = new LineCounter();
  const document = parseDocument(source, { lineCounter: lines, prettyErrors: false, uniqueKeys: true });
  const placeAt = (offset: number) => `${path}:${lines.linePos(offset).line}`;
  const mistakes = [...document.errors, ...document.warnings];
  if (mistakes.length > 0) {
    return { values: {}, problems: mistakes.map(({ pos, message }) => `${placeAt(pos[0])}: ${message}`) };
  }
  const { contents } = document;
  if (contents === null || (isScalar(contents) && contents.value === null))
    return { values: {}, problems: [] };
  if (!isMap(contents)) return { values: {}, problems: [`${placeAt(0)}: write one NAME: VALUE a line`] };
  const values: Record<string, { value: unknown; place: string }> = {};
  const problems: string[] = [];
  for (const pair of contents.items) {
    const place = placeAt(offsetOf(pair));
    const given = isScalar(pair.key) ? String(pair.key.value) : "?";
    try {
      const { name, value } = readPair(given, pair, table, isPrivate);
      if (values[name] !== undefined)
        throw new Error(`${name} and ${secretFileName(name)} are both set; set one of them`);
      values[name] = { value, place };
    } catch (error) {
      problems.push(`${place}: ${given}: ${(error as Error).message}`);
    }
  }
  return { values, problems };
}

function offsetOf(pair: unknown): number {
  const key = isPair(pair) ? (pair.key as { range?: readonly number[] | null }) : undefined;
  return key?.range?.[0] ?? 0;
}

/**
 * Returns the name and the value of a setting in one line of the file.
 *
 * @throws Error with the reason why the line is invalid
 */
function readPair(
  given: string,
  { value: node }: Pair,
  table: SettingsTable,
  isPrivate: boolean,
): { name: string; value: unknown } {
  const found = given === OWN_NAME ? undefined : settingInFile(table, given);
  if (found === undefined) {
    const near = nearest(
      given,
      Object.keys(table).filter((name) => name !== OWN_NAME),
    );
    throw new Error(`is not a setting${near === undefined ? "" : `; did you mean ${near}?`}`);
  }
  const { name, setting, isFile } = found;
  const value = jsonOf(node);
  if (isFile) return { name, value: secretInFile(setting, value) };
  if (setting.isSecret === true && !isPrivate) {
    throw new Error(
      `other users can read this secret; chmod 600 the file, or name the secret's own file as ${secretFileName(name)}`,
    );
  }
  return { name, value: valueInFile(setting, value) };
}

/**
 * Returns the value of a YAML node that is a scalar or a list of scalars; undefined for any other node. An alias has no
 * value here, so a short file cannot expand to a large value.
 */
function jsonOf(node: unknown): unknown {
  if (isScalar(node)) return node.value;
  const { items } = (node ?? {}) as { items?: readonly unknown[] };
  return Array.isArray(items) && items.every(isScalar) ? items.map(({ value }) => value) : undefined;
}
