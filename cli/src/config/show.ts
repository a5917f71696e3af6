import {
  mergeSettings,
  readWithSources,
  type Setting,
  type SettingSource,
  type SettingsTable,
} from "@depute/service";
import { stringify } from "yaml";
import { platformSettings } from "../modules.ts";
import { escapeControls } from "../print/safe-text.ts";
import { readConfigFile } from "./config-file.ts";

const OWN_SETTINGS = {
  all: { type: "bool", default: false, help: "show settings that have their defaults, too", group: "Output" },
} as const satisfies SettingsTable;

const MASK = "********";

/**
 * `depute config show`: prints the settings that the platform would use, in the form of a file of settings. Secrets are
 * masked.
 */
export async function showConfig(args: readonly string[]): Promise<void> {
  const table = platformSettings();
  const program = {
    name: "depute config show",
    description:
      "Shows the settings that the platform would get, with the source of each. Secrets are masked.",
  };
  const file = await readConfigFile(args, table);
  const { settings, sourceOf } = readWithSources(mergeSettings(table, OWN_SETTINGS), args, program, file);
  for (const [name, setting] of Object.entries(table)) {
    const source = sourceOf(name);
    // The file of settings cannot contain its own path.
    if (name === "configFile") continue;
    if (source === "default" && settings.all !== true) continue;
    const from = source === "file" ? (file[name]?.place ?? source) : source;
    console.log(escapeControls(lineOf(name, setting, settings[name], from)));
  }
}

/**
 * Returns one line of the printed file of settings. The line of a secret is a comment, because its value is only a
 * mask.
 */
export function lineOf(
  name: string,
  setting: Setting,
  value: unknown,
  source: SettingSource | string,
): string {
  const isEmpty = value === "";
  if (setting.isSecret === true && !isEmpty) return `# ${name}: "${MASK}" # ${source}`;
  const text = stringify({ [name]: shown(setting, value) }, { lineWidth: 0, collectionStyle: "flow" });
  return `${text.trim().replace(/^\{ *(.*?) *\}$/s, "$1")} # ${source}`;
}

function shown(setting: Setting, value: unknown): unknown {
  if (setting.type === "duration") return durationText(Number(value));
  if (setting.type === "urls") return (value as readonly string[]).map(withoutPassword);
  return setting.type === "url" && value !== "" ? withoutPassword(String(value)) : value;
}

function withoutPassword(address: string): string {
  const url = new URL(address);
  if (url.password === "") return address;
  url.password = MASK;
  return url.href;
}

/** Returns a duration as a whole number of the largest unit that allows one. */
function durationText(ms: number): string {
  const units = [
    ["h", 3_600_000],
    ["m", 60_000],
    ["s", 1_000],
  ] as const;
  const [unit, size] = units.find((each) => ms > 0 && ms % each[1] === 0) ?? ["ms", 1];
  return ms === 0 ? "0s" : `${ms / size}${unit}`;
}
