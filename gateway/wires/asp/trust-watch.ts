import type { Timers } from "@depute/core";
import { ownHeaders } from "@depute/service";
import type { Clients } from "../../edge/clients.ts";
import { agentOfUri } from "./cards.ts";

/**
 * Maximum number of reads of the registry after a session has ended. One read does not suffice, because the registry
 * receives the outcome only some time later. LOOK_MS is the time between two reads, in milliseconds.
 */
const LOOKS = 20;
const LOOK_MS = 250;

interface KnownTrust {
  readonly evidenceCount: bigint;
}

export interface MovedTrust {
  readonly agentId: string;
  readonly score: number;
  readonly level: number;
}

/** Reports how a session's outcome changes its participants' trust. */
export class TrustWatch {
  readonly #clients: Clients;
  readonly #timers: Timers;
  readonly #knownTrust = new Map<string, KnownTrust>();

  constructor(clients: Clients, timers: Timers) {
    this.#clients = clients;
    this.#timers = timers;
  }

  /**
   * Records the current trust of each of these agents that is not recorded yet. Agents that the registry does not
   * return are not recorded, so `moved` never reports them.
   */
  async note(agentIds: readonly string[], signal: AbortSignal): Promise<void> {
    const unknown = agentIds.filter((agentId) => !this.#knownTrust.has(agentId));
    const observations = await Promise.all(
      unknown.map((agentId) => this.#read(agentId, signal).catch(() => undefined)),
    );
    for (const [index, trust] of observations.entries()) {
      if (trust !== undefined) this.#knownTrust.set(unknown[index] ?? "", trust);
    }
  }

  /**
   * Yields each recorded agent when its trust has changed. Ends when the trust of all has changed, or after LOOKS
   * reads.
   */
  async *moved(signal: AbortSignal): AsyncGenerator<MovedTrust, void, undefined> {
    for (let reads = 0; reads < LOOKS && this.#knownTrust.size > 0 && !signal.aborted; reads++) {
      for (const [agentId, before] of this.#knownTrust) {
        const trust = await this.#read(agentId, signal).catch(() => undefined);
        if (trust === undefined || trust.evidenceCount <= before.evidenceCount) continue;
        this.#knownTrust.delete(agentId);
        yield { agentId, score: Math.round(trust.score * 10) / 10, level: trust.level };
      }
      if (this.#knownTrust.size > 0)
        await new Promise<void>((resolve) => this.#timers.after(LOOK_MS, resolve));
    }
  }

  async #read(uri: string, signal: AbortSignal) {
    const options = { headers: ownHeaders(""), signal };
    const agent = await agentOfUri(this.#clients, uri, options);
    if (agent === undefined) return undefined;
    const { overall } = await this.#clients.trust.getTrust({ agentId: agent.id }, options);
    return overall;
  }
}
