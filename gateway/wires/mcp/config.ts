import type { JsonValue } from "@bufbuild/protobuf";
import { ConfigError, type ProxyConfig, readConfig, SHIPPED_MAPS } from "@depute/mcp";
import { SettingsError, textOfFile } from "@depute/service";

/**
 * Reads the file of servers behind the proxy. An empty path means no servers.
 *
 * @throws SettingsError that names each fault by its location
 */
export function readMcpConfig(path: string): ProxyConfig {
  if (path === "") return { upstreams: new Map() };
  try {
    return readConfig(JSON.parse(textOfFile(path)) as JsonValue, SHIPPED_MAPS);
  } catch (cause) {
    const faults = cause instanceof ConfigError ? cause.faults.join("\n  ") : (cause as Error).message;
    throw new SettingsError(`cannot use the MCP configuration ${path}:\n  ${faults}`, { cause });
  }
}
