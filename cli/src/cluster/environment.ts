import { envName, type Setting, type SettingsTable, secretFileVariable } from "@depute/service";

/**
 * Returns the environment of a process of the cluster: all settings as variables, so that each process reads the same
 * ones as the command that starts it.
 */
export function environmentOf(
  table: SettingsTable,
  settings: Readonly<Record<string, unknown>>,
): NodeJS.ProcessEnv {
  const ownVariables = Object.entries(table).map(([name, setting]) => [
    envName(name),
    written(setting, settings[name]),
  ]);
  // The variables already contain the secrets. A process refuses a secret that also has a file, so the variables that
  // name files are cleared.
  const secretFiles = Object.keys(table).map((name) => [secretFileVariable(name), ""]);
  // The variables already contain the values of the settings file, so the processes read no such file.
  const configFile = [envName("configFile"), ""];
  return { ...process.env, ...Object.fromEntries([...ownVariables, ...secretFiles, configFile]) };
}

/** The value of a setting in the form of its environment variable. */
function written(setting: Setting, value: unknown): string {
  if (setting.type === "duration") return `${value}ms`;
  return Array.isArray(value) ? value.join(",") : String(value);
}
