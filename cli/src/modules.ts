import { gateway } from "@depute/gateway";
import { registry } from "@depute/registry";
import {
  commonSettings,
  type ModuleName,
  mergeSettings,
  type ServiceModule,
  type SettingsTable,
} from "@depute/service";
import { tasks } from "@depute/tasks";
import { tokens } from "@depute/tokens";
import { verifier } from "@depute/verifier";

/** All modules in the order of their start. A module starts after the modules that it calls. */
export const MODULES: Readonly<Record<ModuleName, ServiceModule>> = {
  tokens,
  verifier,
  registry,
  tasks,
  gateway,
};

/** Returns the settings of all modules, and the settings that every process has. */
export function platformSettings(): SettingsTable {
  return mergeSettings(commonSettings, ...Object.values(MODULES).map(({ settings }) => settings));
}
