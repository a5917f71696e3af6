import { readFileSync } from "node:fs";
import { ConfigError, readConfig, SHIPPED_MAPS, type UpstreamConfig } from "@depute/mcp";
import { defineSettings, SettingsError } from "@depute/service";

/** The settings that both MCP commands share: which MCP server to use, and how to start it. */
export const serverSettings = defineSettings({
  config: { type: "string", default: "", help: "JSON file of MCP servers and their tool maps" },
  upstream: {
    type: "string",
    default: "",
    help: "the server's name in the file; empty: the file's only server",
  },
});

/** Splits the arguments: `--` separates the flags from the command of the MCP server. */
export function splitCommand(args: readonly string[]): {
  flags: readonly string[];
  command: readonly string[];
} {
  const at = args.indexOf("--");
  return at < 0 ? { flags: args, command: [] } : { flags: args.slice(0, at), command: args.slice(at + 1) };
}

/**
 * Returns the MCP server to use: the server that the flags name, or the server that the command after `--` starts.
 *
 * @throws SettingsError if the file cannot be used, no server is named, or the server has a `login`
 */
export function upstreamOf(
  { config, upstream }: { config: string; upstream: string },
  [command, ...args]: readonly string[],
): UpstreamConfig & { address: NonNullable<UpstreamConfig["address"]> } {
  const known = config === "" ? bare(upstream) : chosen(config, upstream);
  const address =
    command === undefined ? known.address : ({ kind: "stdio", command, args, env: {} } as const);
  if (known.login)
    throw new SettingsError(
      `${known.name}: login is for /mcp/${known.name} of the gateway; over stdio leave it out`,
    );
  if (address !== undefined) return { ...known, address };
  throw new SettingsError("name the MCP server: `-- COMMAND ARGS`, or stdio or http in the file");
}

function chosen(path: string, name: string): UpstreamConfig {
  let read: ReturnType<typeof readConfig>;
  try {
    read = readConfig(JSON.parse(readFileSync(path, "utf8")), SHIPPED_MAPS);
  } catch (cause) {
    const reason = cause instanceof ConfigError ? cause.faults.join("\n  ") : (cause as Error).message;
    throw new SettingsError(`cannot use ${path}:\n  ${reason}`, { cause });
  }
  const names = [...read.upstreams.keys()];
  const namedUpstream = read.upstreams.get(name === "" && names.length === 1 ? (names[0] ?? "") : name);
  if (namedUpstream !== undefined) return namedUpstream;
  throw new SettingsError(`--upstream is one of: ${names.join(", ")}`);
}

function bare(name: string): UpstreamConfig {
  const server = name === "" ? "server" : name;
  const { upstreams } = readConfig({ upstreams: { [server]: {} } }, SHIPPED_MAPS);
  return upstreams.get(server) as UpstreamConfig;
}
