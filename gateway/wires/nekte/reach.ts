import { isIP } from "node:net";
import { SettingsError } from "@depute/service";

/** The port on which one agent is served. */
export interface AgentPort {
  readonly agentId: string;
  readonly port: number;
}

const MAX_PORT = 65_535;

/**
 * Returns the host names below which `{agent}.NAME` addresses one agent: localhost, the host of the public URL,
 * and the hosts in the setting. A numeric address is omitted, because no host name can be below a numeric
 * address.
 */
export function nekteHosts(configured: readonly string[], publicUrl: string): string[] {
  const ownHost = URL.parse(publicUrl)?.hostname ?? "";
  const names = [...configured.map((name) => name.toLowerCase()), "localhost", ownHost];
  return [...new Set(names)].filter((name) => name !== "" && isIP(name.replace(/^\[|\]$/g, "")) === 0);
}

/**
 * Reads the setting of agents' own ports, with entries `agent=port`.
 *
 * @throws SettingsError
 */
export function readAgentPorts(entries: readonly string[]): AgentPort[] {
  return entries.map((entry) => {
    const [, agentId = "", digits = ""] = /^([^=]+)=(\d{1,5})$/.exec(entry) ?? [];
    const port = Number(digits);
    if (agentId !== "" && port <= MAX_PORT) return { agentId, port };
    throw new SettingsError(`DEPUTE_NEKTE_PORTS: ${entry} is not agent=port: write e.g. worker=8090`);
  });
}
