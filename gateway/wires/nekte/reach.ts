import { isIP } from "node:net";
import { SettingsError } from "@depute/service";

/** A port that is one agent's. */
export interface AgentPort {
  readonly agentId: string;
  readonly port: number;
}

const MAX_PORT = 65_535;

/**
 * The names below which `{agent}.NAME` is an agent's own authority: localhost, the public URL's host, and those of the setting.
 * An address in numbers has no names below it.
 */
export function nekteHosts(configured: readonly string[], publicUrl: string): string[] {
  const own = URL.parse(publicUrl)?.hostname ?? "";
  const names = [...configured.map((name) => name.toLowerCase()), "localhost", own];
  return [...new Set(names)].filter((name) => name !== "" && isIP(name.replace(/^\[|\]$/g, "")) === 0);
}

/**
 * Reads the setting of agents' own ports, `agent=port`.
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
