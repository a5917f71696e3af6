import { envName, flagName, SettingsError, type SettingsTable } from "@depute/service";

/**
 * A table without settings that have no effect on a command.
 *
 * @param unused why each has none, and what to do instead
 * @param env the process's variables
 * @throws SettingsError where a flag or a variable gives one of them
 */
export function withoutUnused(
  table: SettingsTable,
  unused: Readonly<Record<string, string>>,
  args: readonly string[],
  env: Readonly<Record<string, string | undefined>> = process.env,
): SettingsTable {
  for (const [name, why] of Object.entries(unused)) {
    const [flag, variable] = [flagName(name), envName(name)];
    if (args.some((arg) => arg === flag || arg.startsWith(`${flag}=`)))
      throw new SettingsError(`${flag}: ${why}`);
    if ((env[variable] ?? "") !== "") throw new SettingsError(`${variable}: ${why}`);
  }
  return Object.fromEntries(Object.entries(table).filter(([name]) => !Object.hasOwn(unused, name)));
}
