import type { ModuleName, ServiceModule } from "@depute/service";

/**
 * The function that imports each module, in the order of the modules' start. A process of a cluster imports only its
 * own module.
 */
const LOADERS: Readonly<Record<ModuleName, () => Promise<ServiceModule>>> = {
  tokens: async () => (await import("@depute/tokens")).tokens,
  verifier: async () => (await import("@depute/verifier")).verifier,
  registry: async () => (await import("@depute/registry")).registry,
  tasks: async () => (await import("@depute/tasks")).tasks,
  gateway: async () => (await import("@depute/gateway")).gateway,
};

/** The names of all modules in the order of their start. A module starts after the modules that it calls. */
export const MODULE_NAMES = Object.keys(LOADERS) as ModuleName[];

/** Whether an argument of the command line names a module. */
export function isModuleName(word: string | undefined): word is ModuleName {
  return word !== undefined && Object.hasOwn(LOADERS, word);
}

/** Imports modules, one after the other. */
export async function loadModules(names: readonly ModuleName[]): Promise<ServiceModule[]> {
  const modules: ServiceModule[] = [];
  for (const name of names) modules.push(await LOADERS[name]());
  return modules;
}
