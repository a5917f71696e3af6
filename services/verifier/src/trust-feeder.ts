import { durationFromMs } from "@bufbuild/protobuf/wkt";
import type { Client } from "@connectrpc/connect";
import type { AgentService } from "@depute/contracts/depute/registry/v1/agent_service_pb";
import type { TrustService } from "@depute/contracts/depute/registry/v1/trust_service_pb";
import type { DelegationService } from "@depute/contracts/depute/tokens/v1/delegation_service_pb";
import { ErrorReason, type Timers } from "@depute/core";
import { fromConnectError, type Logger, Outbox, ownHeaders, type SharedWork } from "@depute/service";
import type { Store } from "@depute/store";
import { readAttestation } from "./attestations.ts";
import type { Attestation } from "./rules/documents.ts";
import {
  dropOutcome,
  dropResult,
  firstOutcomes,
  firstResults,
  type OutboxRow,
  type ResultOutboxRow,
} from "./store/trust-outbox.ts";

/** Maximum duration that TrustService's contract allows, in milliseconds: 9,223,372,036 seconds. */
const MAX_DURATION_MS = 9_223_372_036_000;

/**
 * Final errors of the registry and of the tokens service. The service does not repeat such a report, because the same
 * error would follow.
 */
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
  /** The leases of background work, one for each outbox. */
  readonly work: Pick<SharedWork, "lease">;
}

/**
 * Reports verified outcomes to the registry as evidence of trust, in the order in which they were stored. Repeats a
 * report until the registry has accepted or refused it. Does not report outcomes of unregistered agents. For each
 * delegation, only the first outcome changes the score, so repeated verification cannot raise the score. Also reports
 * final verification results, unless the seller attested its own work.
 */
export class TrustFeeder {
  readonly #options: TrustFeederOptions;
  readonly #outbox: Outbox<OutboxRow>;
  readonly #results: Outbox<ResultOutboxRow>;

  constructor(options: TrustFeederOptions) {
    this.#options = options;
    const { store, timers, logger, work } = options;
    this.#outbox = new Outbox<OutboxRow>({
      timers,
      log: logger,
      failureMessage: "report of an outcome to the registry failed",
      lease: work.lease("outcomes"),
      first: (limit) => store.read((tx) => firstOutcomes(tx, limit)),
      tell: ({ attestationId }, signal) => this.#tell(attestationId, signal),
      drop: ({ place }) => store.write((tx) => dropOutcome(tx, place)),
    });
    this.#results = new Outbox<ResultOutboxRow>({
      timers,
      log: logger,
      failureMessage: "report of a verification result to the registry failed",
      lease: work.lease("results"),
      first: (limit) => store.read((tx) => firstResults(tx, limit)),
      tell: (row, signal) => this.#tellResult(row, signal),
      drop: ({ place }) => store.write((tx) => dropResult(tx, place)),
    });
  }

  start(): void {
    this.#outbox.start();
    this.#results.start();
  }

  /**
   * Wakes the outboxes of attestations and of verification results. Call this method after you add a row to one of
   * them.
   */
  wake(): void {
    this.#outbox.wake();
    this.#results.wake();
  }

  async close(): Promise<void> {
    await Promise.all([this.#outbox.close(), this.#results.close()]);
  }

  async #tell(attestationId: string, signal: AbortSignal): Promise<void> {
    const { store } = this.#options;
    const { attestation } = await readAttestation(store, attestationId);
    try {
      await this.#record(attestation, signal);
    } catch (error) {
      if (!FINAL.has(fromConnectError(error).reason)) throw error;
    }
  }

  async #record({ id, contractId, delegationId, result }: Attestation, signal: AbortSignal): Promise<void> {
    const { delegations, trust } = this.#options;
    const options = { headers: ownHeaders(""), signal };
    const { delegation } = await delegations.getDelegation({ delegationId }, options);
    if (delegation === undefined || delegation.contractId !== contractId) return;
    const agentId = await this.#agentOf(delegation.delegatee, signal);
    const counterpartAgentId = await this.#agentOf(delegation.delegator, signal);
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
              duration: durationFromMs(Math.min(Math.round(result.durationMs), MAX_DURATION_MS)),
              ...(quality !== undefined && { quality }),
            },
          },
        },
      },
      options,
    );
  }

  async #tellResult(row: ResultOutboxRow, signal: AbortSignal): Promise<void> {
    const { verificationId, agentId, counterpartAgentId, verifierAgentId, success, quality } = row;
    const value = { attestationId: verificationId, success, quality, verifierAgentId };
    const evidence = { agentId, counterpartAgentId, kind: { case: "attestation", value } as const };
    const request = { evidenceId: `verification:${verificationId}`, evidence };
    try {
      await this.#options.trust.recordEvidence(request, { headers: ownHeaders(""), signal });
    } catch (error) {
      if (!FINAL.has(fromConnectError(error).reason)) throw error;
    }
  }

  /** Returns the id of the principal's agent; undefined unless the principal has exactly one agent. */
  async #agentOf(principal: string, signal: AbortSignal): Promise<string | undefined> {
    const options = { headers: ownHeaders(""), signal };
    const { agents } = await this.#options.agents.listAgents({ principal, pageSize: 2 }, options);
    return agents.length === 1 ? agents[0]?.id : undefined;
  }
}
