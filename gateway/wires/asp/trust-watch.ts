import type { Timers } from "@depute/core";
import { ownHeaders } from "@depute/service";
import type { Clients } from "../../src/clients.ts";
import { agentOfUri } from "./cards.ts";

/** Looks after the end of a session, and milliseconds between them: its outcome is told to the registry after it. */
const LOOKS = 20;
const LOOK_MS = 250;

interface Known {
  readonly evidenceCount: bigint;
}

export interface MovedTrust {
  readonly agentId: string;
  readonly score: number;
  readonly level: number;
}

/** How the trust of a session's participants moves by what comes of it. */
export class TrustWatch {
  readonly #clients: Clients;
  readonly #timers: Timers;
  readonly #known = new Map<string, Known>();

  constructor(clients: Clients, timers: Timers) {
    this.#clients = clients;
    this.#timers = timers;
  }

  /** Notes what is known of agents now. What the registry cannot say is not told of later. */
  async note(agentIds: readonly string[], signal: AbortSignal): Promise<void> {
    const unknown = agentIds.filter((agentId) => !this.#known.has(agentId));
    const found = await Promise.all(
      unknown.map((agentId) => this.#read(agentId, signal).catch(() => undefined)),
    );
    for (const [index, trust] of found.entries()) {
      if (trust !== undefined) this.#known.set(unknown[index] ?? "", trust);
    }
  }

  /** Those that have moved, as soon as each has; ends when all have, or after a while. */
  async *moved(signal: AbortSignal): AsyncGenerator<MovedTrust, void, undefined> {
    for (let look = 0; look < LOOKS && this.#known.size > 0 && !signal.aborted; look++) {
      for (const [agentId, before] of this.#known) {
        const trust = await this.#read(agentId, signal).catch(() => undefined);
        if (trust === undefined || trust.evidenceCount <= before.evidenceCount) continue;
        this.#known.delete(agentId);
        yield { agentId, score: Math.round(trust.score * 10) / 10, level: trust.level };
      }
      if (this.#known.size > 0) await new Promise<void>((resolve) => this.#timers.after(LOOK_MS, resolve));
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
