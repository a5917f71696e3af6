import { create, type MessageInitShape, toJson } from "@bufbuild/protobuf";
import { ValueSchema } from "@bufbuild/protobuf/wkt";
import type { ConnectRouter } from "@connectrpc/connect";
import {
  type AttestationResultSchema,
  AttestationSchema,
  type AttestationType,
} from "@depute/contracts/delegateos/v0/attestation_pb";
import { TaskContractSchema } from "@depute/contracts/delegateos/v0/contract_pb";
import {
  AuthorizedScopeSchema,
  type DelegationStatus,
  DenialReasonSchema,
  DenialType,
} from "@depute/contracts/delegateos/v0/delegation_pb";
import { VerificationMethod } from "@depute/contracts/delegateos/v0/verification_pb";
import { AgentStatus } from "@depute/contracts/depute/registry/v1/agent_pb";
import { AgentService } from "@depute/contracts/depute/registry/v1/agent_service_pb";
import { DiscoveryService } from "@depute/contracts/depute/registry/v1/discovery_service_pb";
import {
  type DelegatedWork,
  PolicyDecision,
  PolicyService,
} from "@depute/contracts/depute/registry/v1/policy_service_pb";
import { DelegationService } from "@depute/contracts/depute/tokens/v1/delegation_service_pb";
import {
  RevocationSchema,
  RevocationService,
} from "@depute/contracts/depute/tokens/v1/revocation_service_pb";
import { TokenService } from "@depute/contracts/depute/tokens/v1/token_service_pb";
import { AttestationService } from "@depute/contracts/depute/verifier/v1/attestation_service_pb";
import { ContractService } from "@depute/contracts/depute/verifier/v1/contract_service_pb";
import { VerificationService } from "@depute/contracts/depute/verifier/v1/verification_service_pb";
import { CapabilityFullSchema } from "@depute/contracts/nekte/v1/nekte_pb";
import { DeputeError, ErrorReason, formatTime } from "@depute/core";
import type { ServiceName } from "@depute/service";
import { FakeReviews } from "./fake-reviews.ts";
import { openTaskQuotas } from "./quotas.ts";
import { T0 } from "./tasks.ts";

/** Public keys of valid form, without private keys. */
export const ALICE = `${"A".repeat(42)}A`;
export const BOB = `${"B".repeat(42)}E`;

export const CONTRACT = "ct_0123456789ab";

const json = (value: unknown) => new TextEncoder().encode(JSON.stringify(value));

/** An agent in the fake registry. */
export interface FakeAgent {
  readonly principal: string;
  readonly active: boolean;
  overseer?: string;
  /** The agents to which the agent's CAP manifest allows delegations. If absent, the agent has no manifest. */
  readonly mayDelegateTo?: readonly string[];
  /** The principals, besides the agent's own, that may see the agent; if absent, all may. */
  readonly visibleTo?: readonly string[];
}

/** The facts of an attestation that a task depends on. */
export interface FakeAttestation {
  readonly principal: string;
  readonly contractId: string;
  readonly delegationId: string;
  readonly type: AttestationType;
  readonly result: MessageInitShape<typeof AttestationResultSchema>;
}

/**
 * Fakes of the services that the tasks service calls. The fake schemas support only the keyword `type`. `tokens` lists
 * the valid tokens.
 */
export class Fakes {
  readonly agents = new Map<string, FakeAgent>([
    ["worker", { principal: "", active: true }],
    ["bob", { principal: BOB, active: true }],
    ["gone", { principal: "", active: false }],
  ]);
  readonly capabilities = new Map([
    ["shout", { agentId: "bob", h: "0a1b2c3d", input: { type: "string" }, output: { type: "string" } }],
  ]);
  /** The quotas of the tasks service; read when the bench opens. */
  quotas = openTaskQuotas(1_000_000);
  /** The justifications in the received CheckDelegation calls, in order. */
  readonly justifications: string[] = [];
  /** The facts about the work in the received CheckDelegation calls, in order. */
  readonly works: (DelegatedWork | undefined)[] = [];
  /**
   * If set, the registry refuses every delegation because of a policy predicate. The text says why the predicate could
   * not be evaluated; it is empty if the predicate was false.
   */
  predicateFailure: string | undefined;
  /** The deadline of the fake contract, in epoch milliseconds. */
  contractDeadlineMs = T0 + 600_000;
  /**
   * The result of the contract's check. `timeout` stands for a check that times out, `pending` for a check that waits
   * for a reviewer.
   */
  verdict: { passed: boolean; details: string } | "timeout" | "pending" = { passed: true, details: "" };
  /** Tokens by their text. */
  readonly tokens = new Map<string, { delegatee: string; block: string; denial?: DenialType }>();
  /** Recorded attestations by their id. */
  readonly attestations = new Map<string, FakeAttestation>();
  readonly revoked: string[] = [];
  /** The ends of delegations that the fake received, in order. */
  readonly finished: { revocationId: string; status: DelegationStatus; attestationId: string }[] = [];
  /** Called within each call of FinishDelegation. */
  onFinish: () => void = () => {};
  /** Called within each call of CheckOutput. */
  onCheckOutput: () => Promise<unknown> = async () => {};
  /** The positions from which the service has opened the revocation log, in order. */
  readonly openedAfter: number[] = [];
  /** The queue of reviews. */
  readonly reviews = new FakeReviews(() => T0);
  /** The services that are unavailable. */
  readonly away = new Set<ServiceName>();
  #arrived = () => {};

  /** Revokes a block: denies the tokens that contain the block, and appends the revocation to the log. */
  revoke(block: string): void {
    for (const token of this.tokens.values()) if (token.block === block) token.denial = DenialType.REVOKED;
    this.revoked.push(block);
    this.#arrived();
  }

  routes(name: ServiceName): (router: ConnectRouter) => void {
    return (router) => {
      if (name === "registry") this.#registry(router);
      if (name === "tokens") this.#tokens(router);
      if (name === "verifier") this.#verifier(router);
    };
  }

  #requireUp(name: ServiceName): void {
    if (!this.away.has(name)) return;
    throw new DeputeError(ErrorReason.DEPENDENCY_UNAVAILABLE, "away", { metadata: { service: name } });
  }

  #registry(router: ConnectRouter): void {
    router.rpc(AgentService.method.getAgent, ({ agentId: id, viewer }) => {
      this.#requireUp("registry");
      const agent = this.agents.get(id);
      if (agent === undefined || !sees(viewer, agent)) {
        throw new DeputeError(ErrorReason.AGENT_NOT_FOUND, "no such agent", { metadata: { agent: id } });
      }
      const status = agent.active ? AgentStatus.ACTIVE : AgentStatus.REMOVED;
      const overseer = { case: "overseerId", value: agent.overseer ?? "" } as const;
      const manifest = agent.overseer === undefined ? {} : { manifest: { id, overseer } };
      return { agent: { id, principal: agent.principal, status, ...manifest } };
    });
    router.rpc(PolicyService.method.checkDelegation, (question) => {
      this.#requireUp("registry");
      const { fromAgentId, fromPrincipal, toAgentId, justification, task } = question;
      const binding = [...this.agents].filter(
        ([id, { principal, mayDelegateTo }]) =>
          id === fromAgentId || (principal === fromPrincipal && mayDelegateTo !== undefined),
      );
      if (fromPrincipal !== "" && binding.length === 0) {
        return { allowed: true, decision: PolicyDecision.NOT_BOUND };
      }
      this.justifications.push(justification);
      this.works.push(task);
      const boundAgent = binding.find(([, { mayDelegateTo }]) => mayDelegateTo?.includes(toAgentId));
      const agentId = (boundAgent ?? binding[0])?.[0] ?? "";
      if (boundAgent === undefined) return { allowed: false, decision: PolicyDecision.NOT_ALLOWED, agentId };
      if (this.predicateFailure !== undefined) {
        const { PREDICATE_FAILED, PREDICATE_NOT_MET } = PolicyDecision;
        const decision = this.predicateFailure === "" ? PREDICATE_NOT_MET : PREDICATE_FAILED;
        return { allowed: false, decision, agentId, predicateFailure: this.predicateFailure };
      }
      const allowed = justification.trim() !== "";
      const decision = allowed ? PolicyDecision.ALLOWED : PolicyDecision.NO_JUSTIFICATION;
      return { allowed, decision, agentId };
    });
    router.rpc(DiscoveryService.method.resolveCapability, ({ capabilityId, hash, viewer }) => {
      this.#requireUp("registry");
      const foundCapability = this.capabilities.get(capabilityId);
      const agent = foundCapability && this.agents.get(foundCapability.agentId);
      if (foundCapability === undefined || (agent !== undefined && !sees(viewer, agent))) {
        throw new DeputeError(ErrorReason.CAPABILITY_NOT_FOUND, "no such capability", {
          metadata: { capability: capabilityId },
        });
      }
      const { agentId, h, input, output } = foundCapability;
      return {
        agentId,
        agentPrincipal: this.agents.get(agentId)?.principal ?? "",
        capability: create(CapabilityFullSchema, {
          id: capabilityId,
          h,
          inputSchema: json(input),
          outputSchema: json(output),
        }),
        hashMatches: hash === "" || hash === h,
      };
    });
  }

  #tokens(router: ConnectRouter): void {
    router.rpc(TokenService.method.inspectToken, ({ token }) => {
      this.#requireUp("tokens");
      const knownToken = this.tokens.get(token?.token ?? "");
      if (knownToken === undefined) throw DeputeError.received(ErrorReason.TOKEN_MALFORMED, "no token");
      const block = {
        revocationId: knownToken.block,
        delegatee: knownToken.delegatee,
        delegationId: "del_0123456789ab",
      };
      const result =
        knownToken.denial === undefined
          ? ({ case: "scope", value: create(AuthorizedScopeSchema) } as const)
          : ({ case: "denial", value: create(DenialReasonSchema, { type: knownToken.denial }) } as const);
      return { blocks: [block], delegatee: knownToken.delegatee, result };
    });
    router.rpc(DelegationService.method.finishDelegation, ({ revocationId, outcome }) => {
      this.#requireUp("tokens");
      this.onFinish();
      if (outcome.case !== "result") throw new Error("no result");
      const { status, attestationId } = outcome.value;
      this.finished.push({ revocationId, status, attestationId });
      return {};
    });
    const fakes = this;
    router.rpc(RevocationService.method.watchRevocations, async function* ({ afterSequence }, { signal }) {
      fakes.#requireUp("tokens");
      fakes.openedAfter.push(Number(afterSequence));
      for (let at = Number(afterSequence); !signal.aborted; ) {
        for (; at < fakes.revoked.length; at++) {
          const entry = { revocationId: fakes.revoked[at] ?? "" };
          yield { revocation: create(RevocationSchema, { sequence: BigInt(at + 1), entry }) };
        }
        await new Promise<void>((resolve) => {
          fakes.#arrived = resolve;
          signal.addEventListener("abort", () => resolve(), { once: true });
        });
      }
    });
  }

  #verifier(router: ConnectRouter): void {
    this.reviews.routes(router, () => this.#requireUp("verifier"));
    router.rpc(ContractService.method.getContract, ({ contractId: id }) => {
      this.#requireUp("verifier");
      if (id !== CONTRACT) {
        throw new DeputeError(ErrorReason.CONTRACT_NOT_FOUND, "no such contract", {
          metadata: { contract: id },
        });
      }
      const constraints = {
        deadline: formatTime(this.contractDeadlineMs),
        requiredCapabilities: ["docs:read"],
      };
      const verification = { method: VerificationMethod.SCHEMA_MATCH };
      return { contract: create(TaskContractSchema, { id, constraints, verification }) };
    });
    router.rpc(AttestationService.method.getAttestation, ({ attestationId: id }) => {
      this.#requireUp("verifier");
      const knownAttestation = this.attestations.get(id);
      if (knownAttestation === undefined)
        throw DeputeError.received(ErrorReason.ATTESTATION_NOT_FOUND, "no such attestation");
      return { attestation: create(AttestationSchema, { id, ...knownAttestation }) };
    });
    router.rpc(VerificationService.method.checkSchema, ({ schema, valueJson }) => {
      this.#requireUp("verifier");
      const { type } = toJson(ValueSchema, schema as never) as { type: string };
      const givenValue: unknown = valueJson === "" ? undefined : JSON.parse(valueJson);
      return { violations: typeof givenValue === type ? [] : [{ path: "", message: `must be ${type}` }] };
    });
    router.rpc(VerificationService.method.checkOutput, async () => {
      this.#requireUp("verifier");
      await this.onCheckOutput();
      if (this.verdict === "timeout") throw DeputeError.received(ErrorReason.CHECK_TIMEOUT, "stopped");
      if (this.verdict === "pending") return { method: VerificationMethod.HUMAN_REVIEW, reviewId: "review" };
      return { method: VerificationMethod.SCHEMA_MATCH, result: this.verdict };
    });
  }
}

/** Whether a viewer sees an agent. The empty viewer (the platform itself) and `local` see every agent. */
function sees(viewer: string, { principal, visibleTo }: FakeAgent): boolean {
  if (viewer === "" || viewer === "local" || visibleTo === undefined) return true;
  return viewer === principal || visibleTo.includes(viewer);
}
