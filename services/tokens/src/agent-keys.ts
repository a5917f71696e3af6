import { type Client, createClient, type Transport } from "@connectrpc/connect";
import { AgentService } from "@depute/contracts/depute/registry/v1/agent_service_pb";
import { type Clock, ErrorReason, type Timers } from "@depute/core";
import { fromConnectError, type Logger, ownHeaders } from "@depute/service";
import type { Store } from "@depute/store";
import { BackgroundWork } from "./background.ts";
import type { KeyStore } from "./key-store.ts";
import { replacementInput } from "./rules/key-replacement.ts";
import { firstKeyChanges, type KeyChange, removeKeyChange } from "./store/agent-key-rows.ts";
import { findKey } from "./store/kept-keys.ts";

/** Milliseconds that the registry has to answer in. */
const TIMEOUT_MS = 10_000;
/** Changes that are looked at in one step. */
const BATCH = 100;

/** Refusals that asking again does not change. */
const FINAL: ReadonlySet<ErrorReason> = new Set([
  ErrorReason.AGENT_NOT_FOUND,
  ErrorReason.INVALID_REQUEST,
  ErrorReason.LIMIT_EXCEEDED,
]);

interface AgentKeysOptions {
  store: Store;
  clock: Clock;
  timers: Timers;
  log: Logger;
  keys: KeyStore;
  registry: Transport;
  /** The platform's address; known once the server listens. */
  publicUrl(): string;
}

/**
 * Tells the registry which key an agent has when a kept one is replaced (DelegateOS 13.3). What is to be told is written
 * with the rotation, and removed when the registry has answered.
 */
export class AgentKeys {
  readonly #options: AgentKeysOptions;
  readonly #agents: Client<typeof AgentService>;
  readonly #work: BackgroundWork;
  readonly #closing = new AbortController();
  #cancelStart: (() => void) | undefined;

  constructor(options: AgentKeysOptions) {
    this.#options = options;
    this.#agents = createClient(AgentService, options.registry);
    const what = "the registry cannot be told of agents' new keys";
    this.#work = new BackgroundWork(options, what, () => this.#step());
  }

  /** Goes on with what a restart interrupted. The services of one process start one after the other, hence later. */
  start(): void {
    this.#cancelStart = this.#options.timers.after(0, () => this.#work.kick());
  }

  /** Says that a key was replaced. */
  kick(): void {
    this.#work.kick();
  }

  async close(): Promise<void> {
    this.#cancelStart?.();
    this.#closing.abort();
    await this.#work.close();
  }

  async #step(): Promise<boolean> {
    const { store } = this.#options;
    const changes = await store.read((tx) => firstKeyChanges(tx, BATCH));
    let failure: unknown;
    let told = 0;
    for (const change of changes) {
      try {
        await this.#tell(change);
      } catch (thrown) {
        // It is told at the next start.
        if (this.#closing.signal.aborted) return false;
        failure = fromConnectError(thrown);
        // A clock that is off holds up one agent; a registry that is away holds up all of them.
        if ((failure as { reason: ErrorReason }).reason === ErrorReason.SIGNATURE_INVALID) continue;
        throw failure;
      }
      await store.write((tx) => removeKeyChange(tx, change.keyId));
      told++;
    }
    if (told === 0 && failure !== undefined) throw failure;
    return told > 0;
  }

  /** @throws DeputeError, ConnectError when it is to be tried again */
  async #tell({ keyId, successorId }: KeyChange): Promise<void> {
    const { store, clock, keys, log, publicUrl } = this.#options;
    const [key, successor] = await store.read(async (tx) => [
      await findKey(tx, keyId),
      await findKey(tx, successorId),
    ]);
    if (key === undefined || successor === undefined) return;
    const about = { agent: key.agentId, key: key.id, successor: successor.principal };
    if (successor.state === "revoked") {
      log.warn(about, "an agent's new key is revoked already: the registry keeps the old one");
      return;
    }
    const { agentId: id, principal: replaced } = key;
    const { principal } = successor;
    const input = replacementInput({
      ...{ agentId: id, from: replaced, to: principal, audience: publicUrl(), now: clock.now() },
    });
    const replacedStatement = keys.signReplacement(key, input);
    const principalStatement = keys.signReplacement(successor, input);
    const request = { id, replaced, principal, replacedStatement, principalStatement };
    const options = { headers: ownHeaders(""), timeoutMs: TIMEOUT_MS, signal: this.#closing.signal };
    try {
      await this.#agents.replacePrincipal(request, options);
    } catch (thrown) {
      const { reason, message } = fromConnectError(thrown);
      if (!FINAL.has(reason)) throw thrown;
      log.warn({ ...about, reason: message }, "the registry does not give an agent its new key");
    }
  }
}
