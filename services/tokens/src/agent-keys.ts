import { type Client, createClient, type Transport } from "@connectrpc/connect";
import { AgentService } from "@depute/contracts/depute/registry/v1/agent_service_pb";
import { type Clock, ErrorReason, type Timers } from "@depute/core";
import { fromConnectError, type Logger, ownHeaders, type WorkLease } from "@depute/service";
import type { Store } from "@depute/store";
import { BackgroundWork } from "./background.ts";
import type { KeyStore } from "./key-store.ts";
import { replacementInput } from "./rules/key-replacement.ts";
import { firstKeyChanges, type KeyChange, removeKeyChange } from "./store/agent-key-rows.ts";
import { findKey } from "./store/kept-keys.ts";

/** Timeout of a call to the registry, in milliseconds. */
const TIMEOUT_MS = 10_000;
/** Maximum number of key replacements that one step reports. */
const BATCH = 100;

/** Errors after which the service does not repeat a report, because the registry would return the same error. */
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
  /** Returns the platform's public URL. It is known only after the server has started to listen. */
  publicUrl(): string;
  /** The lease of the replica that reports; undefined without replicas. */
  lease?: WorkLease | undefined;
}

/**
 * Reports to the registry that a key of an agent was replaced (DelegateOS 13.3). The transaction that replaces the key
 * also stores the report. The service deletes the report when the registry has accepted it, or has refused it with a
 * final error.
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
    const purpose = "new keys of agents cannot be reported to the registry";
    this.#work = new BackgroundWork(options, purpose, () => this.#step());
  }

  /**
   * Schedules the reports that an earlier process has stored. The first report starts in the next turn of the event
   * loop, because the registry may start in the same process after this service.
   */
  start(): void {
    const { timers, lease } = this.#options;
    this.#cancelStart = timers.after(0, () =>
      lease === undefined ? this.#work.wake() : this.#work.takeOver(lease),
    );
  }

  /**
   * Starts the reports; with replicas, in the replica that has the lease. Call this method after a key was replaced.
   */
  wake(): void {
    const { lease } = this.#options;
    if (lease?.isHeld === false) lease.wakeHolder();
    else this.#work.wake();
  }

  async close(): Promise<void> {
    this.#cancelStart?.();
    this.#closing.abort();
    await this.#work.close();
  }

  async #step(): Promise<boolean> {
    const { store, lease } = this.#options;
    // Only the replica with the lease reports.
    if (lease?.isHeld === false) return false;
    const changes = await store.read((tx) => firstKeyChanges(tx, BATCH));
    let failure: unknown;
    let reportedCount = 0;
    for (const change of changes) {
      try {
        await this.#report(change);
      } catch (thrown) {
        // The service is closing. The next start repeats the report.
        if (this.#closing.signal.aborted) return false;
        failure = fromConnectError(thrown);
        // SIGNATURE_INVALID concerns this agent only (a wrong time in its statement), so the loop continues. Any other
        // failure, such as an unavailable registry, affects all agents.
        if ((failure as { reason: ErrorReason }).reason === ErrorReason.SIGNATURE_INVALID) continue;
        throw failure;
      }
      await store.write((tx) => removeKeyChange(tx, change.keyId));
      reportedCount++;
    }
    if (reportedCount === 0 && failure !== undefined) throw failure;
    return reportedCount > 0;
  }

  /**
   * Reports one key replacement. A final refusal of the registry only leads to a log line.
   *
   * @throws DeputeError, ConnectError for a failure that a retry may overcome
   */
  async #report({ keyId, successorId }: KeyChange): Promise<void> {
    const { store, clock, keys, log, publicUrl } = this.#options;
    const [key, successor] = await store.read(async (tx) => [
      await findKey(tx, keyId),
      await findKey(tx, successorId),
    ]);
    if (key === undefined || successor === undefined) return;
    const reportedKey = { agent: key.agentId, key: key.id, successor: successor.principal };
    if (successor.state === "revoked") {
      log.warn(reportedKey, "the new key of an agent is already revoked; the registry keeps the old key");
      return;
    }
    const { agentId: id, principal: replaced } = key;
    const { principal } = successor;
    const input = replacementInput({
      ...{ agentId: id, from: replaced, to: principal, audience: publicUrl(), now: clock.now() },
    });
    const replacedStatement = keys.signReplacement(key, input);
    const principalStatement = keys.signReplacement(successor, input);
    const request = { agentId: id, replaced, principal, replacedStatement, principalStatement };
    const options = { headers: ownHeaders(""), timeoutMs: TIMEOUT_MS, signal: this.#closing.signal };
    try {
      await this.#agents.replacePrincipal(request, options);
    } catch (thrown) {
      const { reason, message } = fromConnectError(thrown);
      if (!FINAL.has(reason)) throw thrown;
      log.warn({ ...reportedKey, reason: message }, "the registry refuses the new key of an agent");
    }
  }
}
