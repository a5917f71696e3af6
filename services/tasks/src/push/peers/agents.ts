import type { CallOptions, Client } from "@connectrpc/connect";
import { AgentStatus } from "@depute/contracts/depute/registry/v1/agent_pb";
import type { AgentService } from "@depute/contracts/depute/registry/v1/agent_service_pb";
import { type Clock, ErrorReason } from "@depute/core";
import { fromConnectError, ownHeaders } from "@depute/service";
import { addressOf, urlOf } from "../rules/agent-address.ts";
import { readEndpoint } from "../rules/endpoint.ts";

/**
 * Milliseconds for which the cache keeps a response of the registry. After a change of an endpoint, the service may use
 * the old endpoint for this time.
 */
const FRESH_MS = 5000;
/** Maximum number of agents in the cache. */
const MAX_AGENTS = 10_000;
/** Timeout of a call to the registry, in milliseconds. */
const TIMEOUT_MS = 5000;

interface Remembered {
  readonly endpoint: string;
  readonly untilMs: number;
}

/** Finds the addresses at which agents accept tasks: NEKTE endpoints, and A2A interfaces. */
export class Endpoints {
  readonly #agents: Client<typeof AgentService>;
  readonly #clock: Clock;
  readonly #publicUrl: () => string;
  readonly #endpoints = new Map<string, Remembered>();

  /** @param publicUrl returns the URL of the platform for clients, which is known only after the server listens */
  constructor(agents: Client<typeof AgentService>, clock: Clock, publicUrl: () => string) {
    this.#agents = agents;
    this.#clock = clock;
    this.#publicUrl = publicUrl;
  }

  /** Whether the cache shows that an agent has no endpoint. Makes no call to the registry. */
  hasNone(agentId: string): boolean {
    const cachedEndpoint = this.#endpoints.get(agentId);
    return (
      cachedEndpoint !== undefined &&
      cachedEndpoint.endpoint === "" &&
      cachedEndpoint.untilMs > this.#clock.now()
    );
  }

  /**
   * Returns an active agent's address in the form of `addressOf`; empty for none. The platform's own address counts as
   * none, because the platform would delegate each task to itself forever.
   *
   * @throws DeputeError DEPENDENCY_UNAVAILABLE
   */
  async endpointOf(agentId: string, signal: AbortSignal): Promise<string> {
    const nowMs = this.#clock.now();
    const cachedEndpoint = this.#endpoints.get(agentId);
    if (cachedEndpoint !== undefined && cachedEndpoint.untilMs > nowMs) return cachedEndpoint.endpoint;
    const options: CallOptions = { headers: ownHeaders(""), signal, timeoutMs: TIMEOUT_MS };
    const agentRecord = await this.#agents.getAgent({ agentId }, options).then(
      ({ agent }) => (agent?.status === AgentStatus.ACTIVE ? addressOf(agent) : ""),
      (thrown: unknown) => {
        const refusal = fromConnectError(thrown);
        if (refusal.reason === ErrorReason.AGENT_NOT_FOUND) return "";
        throw refusal;
      },
    );
    const endpoint = isAt(agentRecord, this.#publicUrl()) ? "" : agentRecord;
    const [oldest] = this.#endpoints.keys();
    if (this.#endpoints.size >= MAX_AGENTS && oldest !== undefined) this.#endpoints.delete(oldest);
    this.#endpoints.delete(agentId);
    this.#endpoints.set(agentId, { endpoint, untilMs: nowMs + FRESH_MS });
    return endpoint;
  }
}

/** Whether an endpoint is the platform itself: host and port are the same, over any transport. */
function isAt(endpoint: string, publicUrl: string): boolean {
  return endpoint !== "" && portOf(readEndpoint(urlOf(endpoint))?.url) === portOf(publicUrl);
}

const LOOPBACK: ReadonlySet<string> = new Set(["localhost", "127.0.0.1", "[::1]"]);

/** Returns host and port of an http or https URL, with one name for all names of the local machine. */
function portOf(url: string | undefined): string | undefined {
  if (url === undefined || !URL.canParse(url)) return undefined;
  const { hostname, port, protocol } = new URL(url);
  const host = LOOPBACK.has(hostname) ? "loopback" : hostname;
  return `${host}:${port || (protocol === "https:" ? "443" : "80")}`;
}
