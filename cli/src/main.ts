#!/usr/bin/env node
import { DeputeError } from "@depute/core";
import { HelpRequested, SettingsError } from "@depute/service";
import { cluster } from "./commands/cluster.ts";
import { mcpMap } from "./commands/mcp-map.ts";
import { mcpProxy } from "./commands/mcp-proxy.ts";
import { serve } from "./commands/serve.ts";
import { start } from "./commands/start.ts";
import { verifyTranscriptFile } from "./commands/verify-transcript.ts";
import { isModuleName, MODULE_NAMES } from "./modules.ts";

const USAGE = `depute: delegation infrastructure for software agents

  depute start            the whole platform in one process
  depute serve NAME       one service: ${MODULE_NAMES.join(", ")}
  depute cluster          the five services in processes of their own, with Redis

  depute mcp-proxy --config F -- COMMAND ARGS   an MCP server over stdio whose tools ask for authority
  depute mcp-map -- COMMAND ARGS                drafts a tool map from what an MCP server lists

  depute verify-transcript FILE                 verifies the transcript of an ASP session, offline

  depute COMMAND --help   every setting of it
`;

async function main([command, ...args]: string[]): Promise<void> {
  switch (command) {
    case "start":
      return start(args);
    case "cluster":
      return cluster(args);
    case "mcp-proxy":
      return mcpProxy(args);
    case "mcp-map":
      return mcpMap(args);
    case "verify-transcript":
      process.exitCode = await verifyTranscriptFile(args);
      return;
    case "serve": {
      const [name, ...rest] = args;
      if (isModuleName(name)) return serve(name, rest);
      throw new SettingsError(`serve one of: ${MODULE_NAMES.join(", ")}`);
    }
    case undefined:
    case "help":
    case "--help":
      console.log(USAGE);
      return;
    default:
      throw new SettingsError(`there is no command ${command}; see depute --help`);
  }
}

main(process.argv.slice(2)).catch((error: unknown) => {
  if (error instanceof HelpRequested) {
    console.log(error.text);
    return;
  }
  console.error(advice(error) ?? error);
  process.exitCode = 1;
});

/** What the reader can mend, in a sentence; undefined for a fault that needs its stack. */
function advice(error: unknown): string | undefined {
  if (error instanceof SettingsError || error instanceof DeputeError) return `depute: ${error.message}`;
  if (!(error instanceof Error && "code" in error && error.code === "EADDRINUSE")) return undefined;
  const { address, port } = error as Error & { address?: string; port?: number };
  return `depute: something listens on ${address}:${port} already; choose another port`;
}
