import { settingsSchema } from "@depute/service";
import { platformSettings } from "../modules.ts";

/** Returns the JSON Schema of the file of settings. docs/settings.schema.json has this content. */
export function configSchema(): string {
  const { configFile: _, ...table } = platformSettings();
  return `${JSON.stringify(settingsSchema(table), undefined, 2)}\n`;
}

/** `depute config schema`. */
export async function printConfigSchema(): Promise<void> {
  process.stdout.write(configSchema());
}
