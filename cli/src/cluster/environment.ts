import { envName, type Setting, type SettingsTable, secretFileVariable } from "@depute/service";

/**
 * Returns the environment of a process of the cluster: all settings as variables. So each process has the same settings
 * as the command that starts it.
 */
export function environmentOf(
  table: SettingsTable,
  settings: Readonly<Record<string, unknown>>,
): NodeJS.ProcessEnv {
  const ownVariables = Object.entries(table).map(([name, setting]) => [
    envName(name),
    written(setting, settings[name]),
  ]);
  // The variables already contain the secrets. A process refuses a secret that is also in a file, so this function
  // clears the variables that name files.
  const secretFiles = Object.keys(table).map((name) => [secretFileVariable(name), ""]);
  // The variables already contain the values of the settings file, so the processes read no such file.
  const configFile = [envName("configFile"), ""];
  return { ...process.env, ...Object.fromEntries([...ownVariables, ...secretFiles, configFile]) };
}

/** Returns the value of a setting as text, in the form of an environment variable. */
function written(setting: Setting, value: unknown): string {
  if (setting.type === "duration") return `${value}ms`;
  return Array.isArray(value) ? value.join(",") : String(value);
}
