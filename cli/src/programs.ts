import type { Invocation } from "./table/command.ts";

/**
 * The function that runs a command.
 *
 * @returns the exit code; undefined means 0
 */
// biome-ignore lint/suspicious/noConfusingVoidType: a program without an own exit code returns nothing
export type Program = (invocation: Invocation) => Promise<number | void>;

/** A command that parses its own arguments, like the commands that start services. */
// biome-ignore lint/suspicious/noConfusingVoidType: a command without an own exit code returns nothing
export type OwnWords = (words: readonly string[]) => Promise<number | void>;

/** The programs of the commands in the table, by name. A program is imported only when it runs. */
export const PROGRAMS: Readonly<Record<string, () => Promise<Program>>> = {
  delegate: async () => (await import("./client/delegate.ts")).delegate,
  wait: async () => (await import("./client/delegate.ts")).wait,
  tree: async () => (await import("./client/tree.ts")).tree,
  explain: async () => (await import("./client/explain.ts")).explain,
  verifyAuthority: async () => (await import("./client/verify-authority.ts")).verifyAuthority,
  worker: async () => (await import("./client/worker.ts")).worker,
  serveMcp: async () => (await import("./client/mcp/serve.ts")).serveMcp,
  createToken: async () => (await import("./client/token-create.ts")).createToken,
  inspectToken: async () => (await import("./client/token-inspect.ts")).inspectToken,
  revokeToken: async () => (await import("./client/token-revoke.ts")).revokeToken,
  purgeOrganization: async () => (await import("./client/purge-organization.ts")).purgeOrganization,
  exportAudit: async () => (await import("./client/audit.ts")).exportAudit,
  verifyAudit: async () => (await import("./client/audit.ts")).verifyAudit,
  newKey: async () => (await import("./client/key-new.ts")).newKey,
  createCertificates: async () => (await import("./client/certs-create.ts")).createCertificates,
  listContexts: async () => (await import("./client/context-commands.ts")).listContexts,
  useContext: async () => (await import("./client/context-commands.ts")).useContext,
  createContext: async () => (await import("./client/context-commands.ts")).createContext,
  deleteContext: async () => (await import("./client/context-commands.ts")).deleteContext,
  printConfigSchema: async () => (await import("./config/print-schema.ts")).printConfigSchema,
  printCompletion: async () => (await import("./completion.ts")).printCompletion,
  printCandidates: async () => (await import("./completion.ts")).printCandidates,
  printReference: async () => (await import("./reference.ts")).printReference,
  printVersion: async () => (await import("./version.ts")).printVersion,
};

/** The commands that parse their own arguments. A command is imported only when it runs. */
export const OWN_WORDS: Readonly<Record<string, () => Promise<OwnWords>>> = {
  start: async () => (await import("./commands/start.ts")).start,
  serveNamed: async () => (await import("./commands/serve.ts")).serveNamed,
  cluster: async () => (await import("./commands/cluster.ts")).cluster,
  doctor: async () => (await import("./commands/doctor.ts")).doctor,
  backup: async () => (await import("./backup/backup.ts")).backup,
  restore: async () => (await import("./backup/restore.ts")).restore,
  rotateMaster: async () => (await import("./keys/rotate-master.ts")).rotateMaster,
  upgrade: async () => (await import("./upgrade/upgrade.ts")).upgrade,
  checkConfig: async () => (await import("./config/check.ts")).checkConfig,
  showConfig: async () => (await import("./config/show.ts")).showConfig,
  mcpProxy: async () => (await import("./commands/mcp-proxy.ts")).mcpProxy,
  mcpMap: async () => (await import("./commands/mcp-map.ts")).mcpMap,
  verifyTranscriptFile: async () => (await import("./commands/verify-transcript.ts")).verifyTranscriptFile,
};

/** Loads a program by its name in `PROGRAMS`. */
export function loadProgram(name: string): Promise<Program> {
  const load = PROGRAMS[name];
  if (load === undefined) throw new Error(`programs.ts has no program ${name}`);
  return load();
}

/** Loads a command that parses its own arguments, by its name in `OWN_WORDS`. */
export function loadOwnWords(name: string): Promise<OwnWords> {
  const load = OWN_WORDS[name];
  if (load === undefined) throw new Error(`programs.ts has no program ${name}`);
  return load();
}
