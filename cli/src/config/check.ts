import {
  assertDoor,
  type CommonSettings,
  envName,
  readSettings,
  SettingsError,
  type SettingsTable,
  secretFileVariable,
} from "@depute/service";
import { EXIT } from "../exit-codes.ts";
import { platformSettings } from "../modules.ts";
import { nearest } from "../parse.ts";
import { escapeControls } from "../print/safe-text.ts";
import { openConfigFile } from "./config-file.ts";

/**
 * Variables of Depute that are not settings of the platform. The client commands read them, or `depute worker` sets
 * them for its program.
 */
const OTHER_VARIABLES = new Set([
  "DEPUTE_CONFIG",
  "DEPUTE_CONTEXT",
  "DEPUTE_URL",
  "DEPUTE_KEY",
  "DEPUTE_CA_FILE",
  "DEPUTE_CLIENT_CERT_FILE",
  "DEPUTE_CLIENT_KEY_FILE",
  "DEPUTE_TOKEN_FILE",
  "DEPUTE_SECRET_FILE",
  "DEPUTE_TASK_ID",
  "DEPUTE_ATTEMPT",
  "DEPUTE_WORKER_TOKEN",
]);

/**
 * `depute config check`: checks the settings that the platform would read, and starts nothing.
 *
 * @returns the exit code: 1 if a setting is invalid
 */
export async function checkConfig(args: readonly string[]): Promise<number> {
  const table = platformSettings();
  const program = {
    name: "depute config check",
    description: "Checks the settings that the platform would get, and starts nothing.",
  };
  const { path, values, problems } = await openConfigFile(args, table);
  const all = [...problems];
  try {
    assertDoor(readSettings(table, args, program, values) as CommonSettings, true);
  } catch (error) {
    if (!(error instanceof SettingsError)) throw error;
    all.push(error.message);
  }
  for (const problem of all) console.error(`depute: ${escapeControls(problem)}`);
  for (const warning of unknownVariables(table, process.env)) console.error(`depute: ${warning}`);
  if (all.length > 0) return EXIT.failed;
  const count = Object.keys(values).length;
  console.log(
    path === undefined ? "the settings are valid" : `the settings are valid, ${count} of them from ${path}`,
  );
  return EXIT.ok;
}

/**
 * Returns a warning for each variable `DEPUTE_...` that is neither the variable of a setting nor one of
 * OTHER_VARIABLES. The platform ignores such variables.
 */
export function unknownVariables(table: SettingsTable, env: NodeJS.ProcessEnv): string[] {
  const known = new Set(
    Object.entries(table).flatMap(([name, { isSecret }]) => [
      envName(name),
      ...(isSecret ? [secretFileVariable(name)] : []),
    ]),
  );
  return Object.keys(env)
    .filter((name) => name.startsWith("DEPUTE_") && !known.has(name) && !OTHER_VARIABLES.has(name))
    .sort()
    .map((name) => {
      const near = nearest(name, [...known]);
      return `${name} is ignored, because it is not a setting${near === undefined ? "" : `; did you mean ${near}?`}`;
    });
}
