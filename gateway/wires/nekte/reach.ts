import { isIP } from "node:net";
import { SettingsError } from "@depute/service";

/** The TCP port at which the gateway serves one agent. */
export interface AgentPort {
  readonly agentId: string;
  readonly port: number;
}

const MAX_PORT = 65_535;

/**
 * Returns the host names below which `{agent}.NAME` addresses one agent: localhost, the host of the public URL, and the
 * hosts in the setting. A numeric IP address is omitted, because a host name cannot be below it.
 */
export function nekteHosts(configured: readonly string[], publicUrl: string): string[] {
  const ownHost = URL.parse(publicUrl)?.hostname ?? "";
  const names = [...configured.map((name) => name.toLowerCase()), "localhost", ownHost];
  return [...new Set(names)].filter((name) => name !== "" && isIP(name.replace(/^\[|\]$/g, "")) === 0);
}

/**
 * Reads the setting that assigns ports to agents. Its entries have the form `agent=port`.
 *
 * @throws SettingsError
 */
export function readAgentPorts(entries: readonly string[]): AgentPort[] {
  return entries.map((entry) => {
    const [, agentId = "", digits = ""] = /^([^=]+)=(\d{1,5})$/.exec(entry) ?? [];
    const port = Number(digits);
    if (agentId !== "" && port <= MAX_PORT) return { agentId, port };
    throw new SettingsError(
      `DEPUTE_NEKTE_PORTS: ${entry} must have the form agent=port, for example worker=8090`,
    );
  });
}
