import type { Migration } from "@depute/store";
import { CORE_MIGRATIONS } from "./core/store/migrations.ts";
import { MODULES } from "./modules.ts";

/** The migrations of the store: those of the core, and those of each module. */
export const migrations: Readonly<Record<string, readonly Migration[]>> = {
  core: CORE_MIGRATIONS,
  ...Object.fromEntries(MODULES.map((module) => [module.name, module.migrations])),
};
