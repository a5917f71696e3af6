import { envName, type FileValues, flagName, SettingsError, type SettingsTable } from "@depute/service";

/**
 * Returns a table of settings without the settings that have no effect on a command.
 *
 * @param unused the settings without effect: for each name, the reason and the remedy
 * @param file the values of the file of settings
 * @param env the environment variables of the process
 * @throws SettingsError if a flag, a variable or the file sets a setting without effect
 */
export function withoutUnused(
  table: SettingsTable,
  unused: Readonly<Record<string, string>>,
  args: readonly string[],
  file: FileValues = {},
  env: Readonly<Record<string, string | undefined>> = process.env,
): SettingsTable {
  for (const [name, why] of Object.entries(unused)) {
    const [flag, variable] = [flagName(name), envName(name)];
    if (args.some((arg) => arg === flag || arg.startsWith(`${flag}=`)))
      throw new SettingsError(`${flag}: ${why}`);
    const inFile = file[name];
    if (inFile !== undefined) throw new SettingsError(`${inFile.place}: ${name}: ${why}`);
    if ((env[variable] ?? "") !== "") throw new SettingsError(`${variable}: ${why}`);
  }
  return Object.fromEntries(Object.entries(table).filter(([name]) => !Object.hasOwn(unused, name)));
}
