import { fromJson, type MessageInitShape } from "@bufbuild/protobuf";
import { type Value, ValueSchema } from "@bufbuild/protobuf/wkt";
import type { CallOptions } from "@connectrpc/connect";
import type { TaskContract } from "@depute/contracts/delegateos/v0/contract_pb";
import { type Agent, AgentStatus } from "@depute/contracts/depute/registry/v1/agent_pb";
import {
  type CheckDelegationResponse,
  type DelegatedWorkSchema,
  PolicyDecisionSchema,
} from "@depute/contracts/depute/registry/v1/policy_service_pb";
import type { TaskDraft } from "@depute/contracts/depute/tasks/v1/task_service_pb";
import type { CapabilityFull } from "@depute/contracts/nekte/v1/nekte_pb";
import { DeputeError, ErrorReason, invalid, parseTime } from "@depute/core";
import { sha256Hex } from "@depute/core/sha256";
import { LOCAL_PRINCIPAL } from "@depute/service";
import { checkContexts } from "../contexts/carry-contexts.ts";
import type { Dependencies } from "../dependencies.ts";
import { inspectToken, notTheDelegates } from "../queue/worker-token.ts";
import { checkMessage } from "../rules/message.ts";
import { checkValue, MAX_VALUE_BYTES } from "../rules/values.ts";
import type { Admitted } from "./create-task.ts";
import { schemaViolations } from "./schema-violations.ts";

const JSON_NULL = fromJson(ValueSchema, null);

/** The delegate, the capability and the contract of a draft. */
export interface Target {
  readonly agentId: string;
  readonly agentPrincipal: string;
  /** The overseer that must approve results: empty for none, undefined before the lookup. */
  readonly overseerId: string | undefined;
  /** The capability that the draft names; undefined for work without a capability. */
  readonly capability: CapabilityFull | undefined;
  readonly contract: TaskContract | undefined;
}

/**
 * Checks the rules that concern only the draft itself, such as sizes and combinations of fields.
 *
 * @throws DeputeError LIMIT_EXCEEDED, INVALID_REQUEST
 */
export function checkDraft(draft: TaskDraft): void {
  if (draft.input !== undefined) checkValue(draft.input, "draft.input", MAX_VALUE_BYTES);
  if (draft.message !== undefined) checkMessage(draft.message, "draft.message", MAX_VALUE_BYTES);
  checkContexts(draft);
  if (draft.workerToken !== "" && draft.contractId === "") {
    throw invalid("draft.contract_id", "must name the contract that the worker token is bound to");
  }
  if (draft.capabilityHash !== "" && draft.capabilityId === "") {
    throw invalid("draft.capability_hash", "must be empty without a capability: set capability_id");
  }
}

/**
 * Finds the delegate, the capability and the contract that a draft names.
 *
 * @param viewer the delegator's principal; agents that are hidden from this principal count as not found
 * @throws DeputeError AGENT_NOT_FOUND, CAPABILITY_NOT_FOUND, CAPABILITY_AMBIGUOUS, VERSION_MISMATCH,
 * CONTRACT_NOT_FOUND, DEPENDENCY_UNAVAILABLE
 */
export async function resolveTarget(
  dependencies: Dependencies,
  draft: TaskDraft,
  viewer: string,
  options: CallOptions,
): Promise<Target> {
  const [delegate, contract] = await Promise.all([
    draft.capabilityId === ""
      ? resolveAgent(dependencies, draft.agentId, viewer, options)
      : resolveCapability(dependencies, draft, viewer, options),
    draft.contractId === ""
      ? undefined
      : dependencies.contracts
          .getContract({ contractId: draft.contractId }, options)
          .then((resolved) => resolved.contract),
  ]);
  return { ...delegate, contract };
}

async function resolveAgent({ agents }: Dependencies, id: string, viewer: string, options: CallOptions) {
  const { agent } = await agents.getAgent({ agentId: id, viewer }, options);
  if (agent?.status !== AgentStatus.ACTIVE) {
    throw new DeputeError(
      ErrorReason.AGENT_NOT_FOUND,
      "the agent does not exist, or the caller may not see it",
      { metadata: { agent: id } },
    );
  }
  return {
    agentId: agent.id,
    agentPrincipal: agent.principal,
    overseerId: overseerOf(agent),
    capability: undefined,
  };
}

async function resolveCapability(
  { discovery }: Dependencies,
  draft: TaskDraft,
  viewer: string,
  options: CallOptions,
) {
  const { capabilityId, agentId, capabilityHash: hash } = draft;
  const resolved = await discovery.resolveCapability({ capabilityId, agentId, hash, viewer }, options);
  if (resolved.capability === undefined) throw new Error("the registry returned no capability");
  if (!resolved.hashMatches) {
    throw new DeputeError(
      ErrorReason.VERSION_MISMATCH,
      "the capability has another version: use the version of current_hash",
      {
        metadata: { capability: capabilityId, current_hash: resolved.capability.h },
      },
    );
  }
  const { agentId: delegate, agentPrincipal, capability } = resolved;
  return { agentId: delegate, agentPrincipal, overseerId: undefined, capability };
}

/** Returns the overseer that an agent's manifest names; empty for none. */
function overseerOf(agent: Agent): string {
  const overseer = agent.manifest?.overseer;
  return overseer?.case === "overseerId" ? overseer.value : "";
}

/**
 * Finds the overseer that must approve the delegate's results. Refuses a delegate with an unknown overseer, because
 * nothing could then approve the results. The platform makes this lookup in its own name, because the overseer may be
 * invisible to the delegator.
 *
 * @throws DeputeError AGENT_NOT_FOUND, DEPENDENCY_UNAVAILABLE
 */
async function resolveOverseer({ agents }: Dependencies, target: Target, options: CallOptions) {
  let { overseerId } = target;
  if (overseerId === undefined) {
    const { agent } = await agents.getAgent({ agentId: target.agentId }, options);
    overseerId = agent === undefined ? "" : overseerOf(agent);
  }
  if (overseerId === "") return { overseerId, overseerPrincipal: "" };
  const { agent } = await agents.getAgent({ agentId: overseerId }, options);
  if (agent?.status !== AgentStatus.ACTIVE) {
    throw new DeputeError(
      ErrorReason.AGENT_NOT_FOUND,
      "the delegate's overseer is not a registered agent: register it, or name another overseer",
      {
        metadata: { agent: overseerId },
      },
    );
  }
  return { overseerId, overseerPrincipal: agent.principal };
}

/**
 * Returns the resource that the caller's token must grant. `-` stands for work without a capability, because a
 * requested resource cannot be a pattern.
 */
export function resourceOf({ agentId, capability }: Target): string {
  return `${agentId}/${capability?.id ?? "-"}`;
}

/**
 * Checks a draft against its capability, its contract and its worker token.
 *
 * @throws DeputeError AGENT_NOT_FOUND (the overseer), CALLER_NOT_ALLOWED (the delegator's manifest),
 * INPUT_SCHEMA_VIOLATION, TOKEN_DENIED, INVALID_REQUEST (the contract's deadline has passed), CHECK_TIMEOUT,
 * DEPENDENCY_UNAVAILABLE
 */
// biome-ignore lint/complexity/useMaxParams: what admission rests on is asked of several services
export async function admit(
  dependencies: Dependencies,
  draft: TaskDraft,
  target: Target,
  delegator: string,
  nowMs: number,
  options: CallOptions,
  more?: MoreOfWork,
): Promise<Admitted> {
  const { agentId, agentPrincipal, capability, contract } = target;
  const contractDeadlineMs = contract && deadlineOf(contract, nowMs);
  const work = workOf(draft, capability?.id ?? "", more);
  const [overseer, , token] = await Promise.all([
    resolveOverseer(dependencies, target, options),
    requireAllowed(dependencies, delegator, agentId, draft.description, options, work),
    draft.workerToken === "" ? undefined : admitToken(dependencies, draft, target, options),
    capability?.inputSchema === undefined || capability.inputSchema.length === 0
      ? undefined
      : admitInput(dependencies, capability.inputSchema, draft.input, options),
  ]);
  const schema = capability?.outputSchema?.length ? capability.outputSchema : undefined;
  return {
    admission: {
      delegator,
      agentId,
      agentPrincipal,
      capabilityId: capability?.id ?? "",
      capabilityHash: capability?.h ?? "",
      outputSchema: schema === undefined ? "" : sha256Hex(schema),
      delegationId: token?.delegationId ?? "",
      contractDeadlineMs,
      ...overseer,
    },
    outputSchema: schema,
    blocks: token?.revocationIds ?? [],
  };
}

function deadlineOf(contract: TaskContract, nowMs: number): number | undefined {
  const text = contract.constraints?.deadline ?? "";
  const deadlineMs = text === "" ? undefined : parseTime(text);
  if (deadlineMs !== undefined && deadlineMs <= nowMs) {
    throw invalid("draft.contract_id", "must name a contract whose deadline has not passed");
  }
  return deadlineMs;
}

async function admitToken(
  { tokens }: Dependencies,
  draft: TaskDraft,
  { agentPrincipal, contract }: Target,
  options: CallOptions,
) {
  const requiredCapabilities = contract?.constraints?.requiredCapabilities ?? [];
  const question = { token: draft.workerToken, contractId: draft.contractId, requiredCapabilities };
  const token = await inspectToken(tokens, question, options);
  if (agentPrincipal === "" || token.delegatee !== agentPrincipal) throw notTheDelegates();
  return token;
}

async function admitInput(
  dependencies: Dependencies,
  schema: Uint8Array,
  input: Value | undefined,
  options: CallOptions,
): Promise<void> {
  const violations = await schemaViolations(dependencies, schema, input ?? JSON_NULL, "draft.input", options);
  if (violations.length === 0) return;
  throw new DeputeError(
    ErrorReason.INPUT_SCHEMA_VIOLATION,
    "the input does not fit the capability's schema",
    { violations },
  );
}

/** Length of an agent's key in the registry, in characters. A longer principal cannot be the key of an agent. */
const KEY_CHARS = 43;

/**
 * Maximum number of characters of a task's description that the justification contains. Longer descriptions are cut.
 */
const MAX_JUSTIFICATION = 4000;

/** The facts of a task that the registry's predicates may use. */
export type DelegatedWork = MessageInitShape<typeof DelegatedWorkSchema>;

/** Facts of a task that its draft does not state: its depth in the tree, and the types of its attachments. */
export type MoreOfWork = Pick<DelegatedWork, "depth" | "attachmentTypes">;

/**
 * Returns the facts of a draft that predicates of manifests may use. For a child task, `more.depth` is its depth in the
 * tree; without it, the facts have no depth.
 */
export function workOf(
  { priority, spend, parentTaskId }: TaskDraft,
  capabilityId: string,
  more: MoreOfWork = {},
): DelegatedWork {
  const work: DelegatedWork = { capabilityId, priority, attachmentTypes: more.attachmentTypes ?? [] };
  const depth = more.depth ?? (parentTaskId === "" ? 0 : undefined);
  if (depth !== undefined) work.depth = depth;
  if (spend?.maxCostMicrocents !== undefined) work.maxCostMicrocents = spend.maxCostMicrocents;
  if (spend?.maxTokens !== undefined) work.maxTokens = spend.maxTokens;
  return work;
}

/**
 * Checks that the manifest of the delegator's agent allows the delegate. (CAP "Delegation") CAP requires a
 * justification; Depute uses the task's description. A delegator without a manifest may delegate to every agent.
 *
 * @param delegator the delegator's principal
 * @param to the delegate's id
 * @param task the facts for predicates; absent for none
 * @throws DeputeError CALLER_NOT_ALLOWED, with `agent`, `delegate`, `decision` and, for an undecidable predicate,
 * `predicate_failure`; DEPENDENCY_UNAVAILABLE
 */
export async function requireAllowed(
  dependencies: Dependencies,
  delegator: string,
  to: string,
  description: string,
  options: CallOptions,
  task?: DelegatedWork,
): Promise<void> {
  if (delegator === LOCAL_PRINCIPAL || delegator.length > KEY_CHARS) return;
  const justification = Array.from(description).slice(0, MAX_JUSTIFICATION).join("");
  const question = { fromPrincipal: delegator, toAgentId: to, justification, ...(task && { task }) };
  const answer = await dependencies.policy.checkDelegation(question, options);
  if (!answer.allowed) throw notAllowed(to, answer);
}

function notAllowed(
  to: string,
  { agentId: from, decision, predicateFailure }: CheckDelegationResponse,
): DeputeError {
  const name = PolicyDecisionSchema.value[decision]?.name ?? "";
  const word = name.replace("POLICY_DECISION_", "").toLowerCase();
  return new DeputeError(
    ErrorReason.CALLER_NOT_ALLOWED,
    "the delegator's manifest does not allow this delegation",
    {
      metadata: {
        agent: from,
        delegate: to,
        decision: word,
        ...(predicateFailure !== "" && { predicate_failure: predicateFailure }),
      },
    },
  );
}
