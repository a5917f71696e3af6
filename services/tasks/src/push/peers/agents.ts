import type { CallOptions, Client } from "@connectrpc/connect";
import { AgentStatus } from "@depute/contracts/depute/registry/v1/agent_pb";
import type { AgentService } from "@depute/contracts/depute/registry/v1/agent_service_pb";
import { type Clock, ErrorReason } from "@depute/core";
import { fromConnectError, ownHeaders } from "@depute/service";
import { readEndpoint } from "../rules/endpoint.ts";

/** Milliseconds that an answer of the registry is believed: so long an agent's new endpoint may go unnoticed. */
const FRESH_MS = 5000;
/** Agents that are remembered. */
const MAX_AGENTS = 10_000;
/** Milliseconds for an answer of the registry. */
const TIMEOUT_MS = 5000;

interface Remembered {
  readonly endpoint: string;
  readonly untilMs: number;
}

/** Knows where agents answer NEKTE themselves. */
export class Endpoints {
  readonly #agents: Client<typeof AgentService>;
  readonly #clock: Clock;
  readonly #publicUrl: () => string;
  readonly #known = new Map<string, Remembered>();

  /** @param publicUrl the address under which clients know the platform, once it listens */
  constructor(agents: Client<typeof AgentService>, clock: Clock, publicUrl: () => string) {
    this.#agents = agents;
    this.#clock = clock;
    this.#publicUrl = publicUrl;
  }

  /** Whether an agent is known to have no endpoint, without asking. */
  hasNone(agentId: string): boolean {
    const known = this.#known.get(agentId);
    return known !== undefined && known.endpoint === "" && known.untilMs > this.#clock.now();
  }

  /**
   * An active agent's endpoint; empty for none. The platform's own address is none, whoever gave it as his: work would go
   * round in a circle.
   *
   * @throws DeputeError DEPENDENCY_UNAVAILABLE
   */
  async of(agentId: string, signal: AbortSignal): Promise<string> {
    const nowMs = this.#clock.now();
    const known = this.#known.get(agentId);
    if (known !== undefined && known.untilMs > nowMs) return known.endpoint;
    const options: CallOptions = { headers: ownHeaders(""), signal, timeoutMs: TIMEOUT_MS };
    const named = await this.#agents.getAgent({ id: agentId }, options).then(
      ({ agent }) => (agent?.status === AgentStatus.ACTIVE ? (agent.nekte?.endpoint ?? "") : ""),
      (thrown: unknown) => {
        const refusal = fromConnectError(thrown);
        if (refusal.reason === ErrorReason.AGENT_NOT_FOUND) return "";
        throw refusal;
      },
    );
    const endpoint = isAt(named, this.#publicUrl()) ? "" : named;
    const [oldest] = this.#known.keys();
    if (this.#known.size >= MAX_AGENTS && oldest !== undefined) this.#known.delete(oldest);
    this.#known.delete(agentId);
    this.#known.set(agentId, { endpoint, untilMs: nowMs + FRESH_MS });
    return endpoint;
  }
}

/** Whether an endpoint is at a platform's address, by whichever transport. */
function isAt(endpoint: string, publicUrl: string): boolean {
  return endpoint !== "" && portOf(readEndpoint(endpoint)?.url) === portOf(publicUrl);
}

const LOOPBACK: ReadonlySet<string> = new Set(["localhost", "127.0.0.1", "[::1]"]);

/** Host and port of an http or https URL; all names of this machine are one. */
function portOf(url: string | undefined): string | undefined {
  if (url === undefined || !URL.canParse(url)) return undefined;
  const { hostname, port, protocol } = new URL(url);
  const host = LOOPBACK.has(hostname) ? "loopback" : hostname;
  return `${host}:${port || (protocol === "https:" ? "443" : "80")}`;
}
