import { gateway } from "@depute/gateway";
import { registry } from "@depute/registry";
import type { ModuleName, ServiceModule } from "@depute/service";
import { tasks } from "@depute/tasks";
import { tokens } from "@depute/tokens";
import { verifier } from "@depute/verifier";

/** Everything that can run, in the order in which it is started: what others call first. */
export const MODULES: Readonly<Record<ModuleName, ServiceModule>> = {
  tokens,
  verifier,
  registry,
  tasks,
  gateway,
};

export const MODULE_NAMES = Object.keys(MODULES) as ModuleName[];

/** Whether a word of the command line names a module. */
export function isModuleName(word: string | undefined): word is ModuleName {
  return word !== undefined && Object.hasOwn(MODULES, word);
}
