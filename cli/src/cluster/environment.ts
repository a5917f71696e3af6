import { envName, type Setting, type SettingsTable, secretFileVariable } from "@depute/service";

/**
 * Returns the environment of a process of the cluster. The environment contains all settings as variables, so the
 * process has the given settings and no others.
 */
export function environmentOf(
  table: SettingsTable,
  settings: Readonly<Record<string, unknown>>,
): NodeJS.ProcessEnv {
  const ownVariables = Object.entries(table).map(([name, setting]) => [
    envName(name),
    written(setting, settings[name]),
  ]);
  // The variables already contain the secrets. A process refuses a secret that both a variable and a file contain, so
  // this function clears the variables that name files.
  const secretFiles = Object.keys(table).map((name) => [secretFileVariable(name), ""]);
  // The variables already contain the values of the settings file, so the processes need not read that file.
  const configFile = [envName("configFile"), ""];
  return { ...process.env, ...Object.fromEntries([...ownVariables, ...secretFiles, configFile]) };
}

/** Returns the value of a setting in the form of an environment variable's text. */
function written(setting: Setting, value: unknown): string {
  if (setting.type === "duration") return `${value}ms`;
  return Array.isArray(value) ? value.join(",") : String(value);
}
