import { systemClock, systemTimers } from "@depute/core";
import { type DraftedTool, definitionDigest, draftMap, Upstream } from "@depute/mcp";
import { readSettings } from "@depute/service";
import { serverSettings, splitCommand, upstreamOf } from "./mcp-config.ts";

/**
 * Maximum number of pages that the command reads from a server's list of tools. The limit protects against a list
 * without end.
 */
const MAX_PAGES = 64;

/** `depute mcp-map -- COMMAND ARGS`: reads a server's list of tools, and drafts a tool map for a person to review. */
export async function mcpMap(args: readonly string[]): Promise<void> {
  const { flags, command } = splitCommand(args);
  const options = readSettings(serverSettings, flags, {
    name: "depute mcp-map",
    description: "Drafts a tool map from an MCP server's own list. The server's command follows `--`.",
  });
  const config = upstreamOf(options, command);
  const upstream = new Upstream({
    config,
    address: config.address,
    clock: systemClock,
    timers: systemTimers,
  });
  try {
    const tools = await listTools(upstream);
    const digestOf = (tool: DraftedTool) => definitionDigest(tool as unknown as Record<string, unknown>);
    console.log(JSON.stringify(draftMap(config.name, tools, digestOf), null, 2));
  } finally {
    await upstream.close();
  }
}

async function listTools(upstream: Upstream): Promise<DraftedTool[]> {
  const tools: DraftedTool[] = [];
  let cursor: unknown;
  for (let page = 0; page < MAX_PAGES; page++) {
    const result = await upstream.request("tools/list", cursor === undefined ? {} : { cursor });
    tools.push(...(result.tools as DraftedTool[]));
    cursor = result.nextCursor;
    if (cursor === undefined) break;
  }
  return tools;
}
