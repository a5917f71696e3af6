import { settingsSchema } from "@depute/service";
import { platformSettings } from "../modules.ts";

/** Returns the JSON Schema of the file of settings, the content of docs/settings.schema.json. */
export function configSchema(): string {
  const { configFile: _, ...table } = platformSettings();
  return `${JSON.stringify(settingsSchema(table), undefined, 2)}\n`;
}

/** `depute config schema`. */
export async function printConfigSchema(): Promise<void> {
  process.stdout.write(configSchema());
}
