import { parseSetting, readSecret, type Setting, type SettingsTable } from "./settings.ts";

/** The accepted form of each type of value in a file of settings, for messages. */
const FORMS: Readonly<Record<Setting["type"], string>> = {
  string: "a text",
  int: "a whole number",
  duration: "a duration like 250ms, 30s, 5m or 1h",
  bool: "true or false",
  list: "a list of texts without commas",
  url: "an address like http://host:8080",
  urls: "a list of addresses like http://host:8080",
};

/**
 * Converts the JSON value of a setting in a file of settings to the value of the setting.
 *
 * @throws Error that states the accepted form
 */
export function valueInFile(setting: Setting, given: unknown): unknown {
  if (setting.type === "list") {
    const isList = Array.isArray(given) && given.every((word) => typeof word === "string" && isWord(word));
    if (!isList) throw wrongForm(setting);
    return given;
  }
  if (setting.type === "urls") {
    const isList = Array.isArray(given) && given.every((url) => typeof url === "string" && isWord(url));
    if (!isList) throw wrongForm(setting);
    return parseSetting(setting, given.join(","));
  }
  const type = setting.type === "int" ? "number" : setting.type === "bool" ? "boolean" : "string";
  if (typeof given !== type) throw wrongForm(setting);
  return parseSetting(setting, String(given));
}

/**
 * Whether a text can also be an element of a list in an environment variable, which separates elements by commas. A
 * cluster passes lists to its processes in such variables.
 */
function isWord(text: string): boolean {
  return text !== "" && !text.includes(",") && text.trim() === text;
}

function wrongForm({ type }: Setting): Error {
  return new Error(`write ${FORMS[type]}`);
}

/** Returns the name that a file of settings uses for the path of a secret's file. */
export function secretFileName(name: string): string {
  return `${name}File`;
}

/**
 * Returns the setting that a name in a file of settings belongs to. For `internalSecretFile`, this is the setting
 * `internalSecret` with `isFile` true. Undefined if no setting has the name.
 */
export function settingInFile(
  table: SettingsTable,
  given: string,
): { readonly name: string; readonly setting: Setting; readonly isFile: boolean } | undefined {
  if (Object.hasOwn(table, given)) return { name: given, setting: table[given] as Setting, isFile: false };
  const name = given.replace(/File$/, "");
  const setting = Object.hasOwn(table, name) ? table[name] : undefined;
  return setting?.isSecret === true && name !== given ? { name, setting, isFile: true } : undefined;
}

/**
 * Returns the secret that the file at `path` contains. A file of settings names this path.
 *
 * @throws Error with the reason, which never quotes the secret
 */
export function secretInFile(setting: Setting, path: unknown): unknown {
  if (typeof path !== "string" || path === "") throw new Error("write the path of a file");
  return readSecret(path, setting);
}

/** Returns the JSON Schema (draft 2020-12) of a file of settings. */
export function settingsSchema(table: SettingsTable): Record<string, unknown> {
  const secrets = Object.keys(table).filter((name) => table[name]?.isSecret === true);
  return {
    $schema: "https://json-schema.org/draft/2020-12/schema",
    title: "Settings of a Depute platform",
    description: "The file of DEPUTE_CONFIG_FILE. Flags win over variables, and variables over the file.",
    type: "object",
    properties: Object.fromEntries([
      ...Object.entries(table).map(([name, setting]) => [name, schemaOf(setting)]),
      ...secrets.map((name) => [
        secretFileName(name),
        { description: `path of a file with ${name}`, type: "string", minLength: 1 },
      ]),
    ]),
    dependentSchemas: Object.fromEntries(
      secrets.map((name) => [name, { properties: { [secretFileName(name)]: false } }]),
    ),
    additionalProperties: false,
  };
}

/** The pattern of an address. It allows no comma, because commas separate the addresses in an environment variable. */
const ADDRESS = "^(https?|rediss?|postgres(ql)?)://[^\\s,]+$";

function schemaOf(setting: Setting): Record<string, unknown> {
  const { help: description, default: preset } = setting;
  return { description, ...formOf(setting), default: preset };
}

function formOf(setting: Setting): Record<string, unknown> {
  switch (setting.type) {
    case "string":
      return { type: "string", ...(setting.choices !== undefined && { enum: setting.choices }) };
    case "int":
      return {
        type: "integer",
        minimum: setting.min ?? Number.MIN_SAFE_INTEGER,
        maximum: setting.max ?? Number.MAX_SAFE_INTEGER,
      };
    case "duration":
      return { type: "string", pattern: "^[0-9]{1,12}(ms|s|m|h)$" };
    case "bool":
      return { type: "boolean" };
    case "list":
      return { type: "array", items: { type: "string", pattern: "^[^,\\s]([^,]*[^,\\s])?$" } };
    case "url":
      return { type: "string", pattern: `^$|${ADDRESS}` };
    case "urls":
      return { type: "array", minItems: 1, items: { type: "string", pattern: ADDRESS } };
  }
}
