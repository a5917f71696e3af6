import type { Client } from "@connectrpc/connect";
import type { AgentService } from "@depute/contracts/depute/registry/v1/agent_service_pb";
import type { TrustService } from "@depute/contracts/depute/registry/v1/trust_service_pb";
import type { DelegationService } from "@depute/contracts/depute/tokens/v1/delegation_service_pb";
import { ErrorReason, type Timers } from "@depute/core";
import { fromConnectError, type Logger, ownHeaders } from "@depute/service";
import type { Store } from "@depute/store";
import { readAttestation } from "./attestations.ts";
import type { Attestation } from "./rules/documents.ts";
import { dropOutcome, firstOutcomes } from "./store/trust-outbox.ts";

/** How long to wait while another service is away, and between looks, in milliseconds. */
const WAIT_MS = 30_000;
const BATCH = 50;

/** Refusals that another try would meet as well. */
const FINAL: ReadonlySet<ErrorReason> = new Set([
  ErrorReason.EVIDENCE_EXISTS,
  ErrorReason.AGENT_NOT_FOUND,
  ErrorReason.INVALID_REQUEST,
  ErrorReason.CALLER_NOT_ALLOWED,
  ErrorReason.DELEGATION_NOT_FOUND,
  ErrorReason.DELEGATION_AMBIGUOUS,
]);

export interface TrustFeederOptions {
  readonly store: Store;
  readonly delegations: Client<typeof DelegationService>;
  readonly agents: Client<typeof AgentService>;
  readonly trust: Client<typeof TrustService>;
  readonly timers: Timers;
  readonly logger: Logger;
}

/**
 * Tells the registry what came of work that the verifier judged, as evidence of trust: each outcome in the order in which
 * it was signed, until the registry has it. One that concerns no registered agents is passed over, and of one delegation
 * only the first counts, so that the same work is not judged over and over to gain trust.
 */
export class TrustFeeder {
  readonly #options: TrustFeederOptions;
  readonly #closing = new AbortController();
  #wake: () => void = () => {};
  /** Whether something came while this looked at what was there. */
  #woken = false;
  #done: Promise<void> = Promise.resolve();

  constructor(options: TrustFeederOptions) {
    this.#options = options;
  }

  start(): void {
    // The services of one process start one after the other; nobody is called before all of them are up.
    this.#done = this.#wait(0).then(() => this.#run());
  }

  /** There is something new. */
  wake(): void {
    this.#woken = true;
    this.#wake();
  }

  async close(): Promise<void> {
    this.#closing.abort();
    this.#wake();
    await this.#done;
  }

  async #run(): Promise<void> {
    const { store, logger } = this.#options;
    const { signal } = this.#closing;
    while (!signal.aborted) {
      this.#woken = false;
      try {
        const rows = await store.read((tx) => firstOutcomes(tx, BATCH));
        for (const { place, attestationId } of rows) {
          if (signal.aborted) return;
          await this.#tell(attestationId);
          await store.write((tx) => dropOutcome(tx, place));
        }
        if (rows.length === BATCH || this.#woken) continue;
      } catch (error) {
        if (signal.aborted) return;
        logger.warn({ err: error }, "outcomes cannot be told to the registry; trying again");
      }
      await this.#wait(WAIT_MS);
    }
  }

  async #tell(attestationId: string): Promise<void> {
    const { store } = this.#options;
    const { attestation } = await readAttestation(store, attestationId);
    try {
      await this.#record(attestation);
    } catch (error) {
      if (!FINAL.has(fromConnectError(error).reason)) throw error;
    }
  }

  async #record({ id, contractId, delegationId, result }: Attestation): Promise<void> {
    const { delegations, trust } = this.#options;
    const options = { headers: ownHeaders(""), signal: this.#closing.signal };
    const { delegation } = await delegations.getDelegation({ delegationId }, options);
    if (delegation === undefined || delegation.contractId !== contractId) return;
    const agentId = await this.#agentOf(delegation.to);
    const counterpartAgentId = await this.#agentOf(delegation.from);
    if (agentId === undefined || counterpartAgentId === undefined) return;
    const quality = result.verificationOutcome?.score;
    await trust.recordEvidence(
      {
        evidenceId: `verifier:${delegation.revocationId}`,
        evidence: {
          agentId,
          counterpartAgentId,
          kind: {
            case: "attestation",
            value: {
              attestationId: id,
              success: result.success,
              durationMs: BigInt(Math.round(result.durationMs)),
              ...(quality !== undefined && { quality }),
            },
          },
        },
      },
      options,
    );
  }

  /** The agent of a principal, when it has just one. */
  async #agentOf(principal: string): Promise<string | undefined> {
    const options = { headers: ownHeaders(""), signal: this.#closing.signal };
    const { agents } = await this.#options.agents.listAgents({ principal, pageSize: 2 }, options);
    return agents.length === 1 ? agents[0]?.id : undefined;
  }

  #wait(ms: number): Promise<void> {
    if (this.#closing.signal.aborted) return Promise.resolve();
    return new Promise((resolve) => {
      const cancel = this.#options.timers.after(ms, resolve);
      this.#wake = () => {
        cancel();
        resolve();
      };
    });
  }
}
