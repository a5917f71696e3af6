import type { Client } from "@connectrpc/connect";
import type { AgentService } from "@depute/contracts/depute/registry/v1/agent_service_pb";
import { type Logger, ownHeaders } from "@depute/service";
import type { ReadTx } from "@depute/store";
import { isKnownPrincipal } from "./store/block-rows.ts";

/** Timeout of a call to the registry, in milliseconds. */
const TIMEOUT_MS = 2000;

interface KnownKeysOptions {
  /** The principals of the trusted roots and minters in the settings. */
  readonly configured: ReadonlySet<string>;
  /** Whether a configured credential belongs to this principal. */
  readonly hasCredential: (principal: string) => boolean;
  readonly agents: Pick<Client<typeof AgentService>, "listAgents">;
  readonly log: Logger;
}

/**
 * Decides whether a key is known: a recorded block, a setting, a credential or an agent's card contains it. Any party
 * can generate unknown keys.
 */
export class KnownKeys {
  readonly #options: KnownKeysOptions;

  constructor(options: KnownKeysOptions) {
    this.#options = options;
  }

  /** Whether a recorded block contains the key as its signer or delegatee. */
  isRecorded(tx: ReadTx, key: string): Promise<boolean> {
    return isKnownPrincipal(tx, key);
  }

  /**
   * Whether a setting, a credential or an agent's card contains the key. False if the registry does not
   * respond.
   */
  async isNamed(key: string): Promise<boolean> {
    const { configured, hasCredential, agents, log } = this.#options;
    if (configured.has(key) || hasCredential(key)) return true;
    try {
      const options = { headers: ownHeaders(""), timeoutMs: TIMEOUT_MS };
      const listed = await agents.listAgents({ principal: key, pageSize: 1 }, options);
      return listed.agents.length > 0;
    } catch (err) {
      log.warn({ err }, "the registry does not answer whether a card names a key; the key counts as unknown");
      return false;
    }
  }
}
