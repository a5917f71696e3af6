import { fromJson, toJsonString } from "@bufbuild/protobuf";
import { type Value, ValueSchema } from "@bufbuild/protobuf/wkt";
import type { CallOptions } from "@connectrpc/connect";
import type { TaskContract } from "@depute/contracts/delegateos/v0/contract_pb";
import { type Agent, AgentStatus } from "@depute/contracts/depute/registry/v1/agent_pb";
import type { TaskDraft } from "@depute/contracts/depute/tasks/v1/task_service_pb";
import type { CapabilityFull } from "@depute/contracts/nekte/v1/nekte_pb";
import { DeputeError, ErrorReason, type FieldViolation, invalid, parseTime } from "@depute/core";
import { sha256Hex } from "@depute/core/sha256";
import { checkContexts } from "../contexts/carry-contexts.ts";
import type { Dependencies } from "../dependencies.ts";
import { inspectToken, notTheDelegates } from "../queue/worker-token.ts";
import { checkValue, MAX_VALUE_BYTES } from "../rules/values.ts";
import type { Admitted } from "./create-task.ts";
import { type MoreOfWork, requireAllowed, workOf } from "./delegation-policy.ts";

const JSON_NULL = fromJson(ValueSchema, null);

/** Whom a draft is for, what of, and under which contract. */
export interface Target {
  readonly agentId: string;
  readonly agentPrincipal: string;
  /** Who has to approve results; undefined where that is still to be asked. */
  readonly overseerId: string | undefined;
  /** Undefined for free work. */
  readonly capability: CapabilityFull | undefined;
  readonly contract: TaskContract | undefined;
}

/**
 * Refuses what is wrong with a draft whatever the rest of the platform says.
 *
 * @throws DeputeError LIMIT_EXCEEDED, INVALID_REQUEST
 */
export function checkDraft(draft: TaskDraft): void {
  if (draft.input !== undefined) checkValue(draft.input, "draft.input", MAX_VALUE_BYTES);
  checkContexts(draft);
  if (draft.workerToken !== "" && draft.contractId === "") {
    throw invalid("draft.contract_id", "must name the contract that the worker token is bound to");
  }
  if (draft.capabilityHash !== "" && draft.capabilityId === "") {
    throw invalid("draft.capability_hash", "is given without a capability");
  }
}

/**
 * Finds the delegate, the capability and the contract that a draft names.
 *
 * @param viewer the principal that hands over: an agent that is hidden from it is not found
 * @throws DeputeError AGENT_NOT_FOUND, CAPABILITY_NOT_FOUND, CAPABILITY_AMBIGUOUS, VERSION_MISMATCH, CONTRACT_NOT_FOUND,
 * DEPENDENCY_UNAVAILABLE
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
      : dependencies.contracts.getContract({ id: draft.contractId }, options).then((found) => found.contract),
  ]);
  return { ...delegate, contract };
}

async function resolveAgent({ agents }: Dependencies, id: string, viewer: string, options: CallOptions) {
  const { agent } = await agents.getAgent({ id, viewer }, options);
  if (agent?.status !== AgentStatus.ACTIVE) {
    throw new DeputeError(ErrorReason.AGENT_NOT_FOUND, "no such agent", { metadata: { agent: id } });
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
  const found = await discovery.resolveCapability({ capabilityId, agentId, hash, viewer }, options);
  if (found.capability === undefined) throw new Error("the registry resolved a capability to nothing");
  if (!found.hashMatches) {
    throw new DeputeError(ErrorReason.VERSION_MISMATCH, "the capability has another version now", {
      metadata: { capability: capabilityId, current_hash: found.capability.h },
    });
  }
  const { agentId: delegate, agentPrincipal, capability } = found;
  return { agentId: delegate, agentPrincipal, overseerId: undefined, capability };
}

/** The overseer that an agent's manifest names; empty for none. */
function overseerOf(agent: Agent): string {
  const overseer = agent.manifest?.overseer;
  return overseer?.case === "overseerId" ? overseer.value : "";
}

/**
 * Who has to approve the delegate's results. Work for an agent whose overseer is not there is refused: nobody could.
 * Looked up by the sight of the platform: the delegate chose its overseer, whether or not the delegator sees it.
 *
 * @throws DeputeError AGENT_NOT_FOUND, DEPENDENCY_UNAVAILABLE
 */
async function resolveOverseer({ agents }: Dependencies, target: Target, options: CallOptions) {
  let { overseerId } = target;
  if (overseerId === undefined) {
    const { agent } = await agents.getAgent({ id: target.agentId }, options);
    overseerId = agent === undefined ? "" : overseerOf(agent);
  }
  if (overseerId === "") return { overseerId, overseerPrincipal: "" };
  const { agent } = await agents.getAgent({ id: overseerId }, options);
  if (agent?.status !== AgentStatus.ACTIVE) {
    throw new DeputeError(ErrorReason.AGENT_NOT_FOUND, "the delegate's overseer is not there", {
      metadata: { agent: overseerId },
    });
  }
  return { overseerId, overseerPrincipal: agent.principal };
}

/** The resource that a token of the caller must grant. Free work is `-`, since a resource asked for is no pattern. */
export function resourceOf({ agentId, capability }: Target): string {
  return `${agentId}/${capability?.id ?? "-"}`;
}

/**
 * Checks a draft against its capability, its contract and the token that its worker shall have.
 *
 * @throws DeputeError AGENT_NOT_FOUND (the overseer), CALLER_NOT_ALLOWED (the delegator's manifest), INPUT_SCHEMA_VIOLATION, TOKEN_DENIED, INVALID_REQUEST (the contract's time has passed),
 * CHECK_TIMEOUT, DEPENDENCY_UNAVAILABLE
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
    throw invalid("draft.contract_id", "names a contract whose deadline has passed");
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

/**
 * Where a value breaks a schema of a user's; such schemas run nowhere but in the verifier.
 *
 * @param schema JSON in UTF-8
 * @param field where the value stands in the request; the JSON pointer into it is appended
 */
export async function schemaViolations(
  { verification }: Dependencies,
  schema: Uint8Array,
  value: Value,
  field: string,
  options: CallOptions,
): Promise<FieldViolation[]> {
  const parsed = fromJson(ValueSchema, JSON.parse(new TextDecoder().decode(schema)));
  const { violations } = await verification.checkSchema(
    { schema: parsed, valueJson: toJsonString(ValueSchema, value) },
    options,
  );
  return violations.map(({ path, message }) => ({ field: `${field}${path}`, description: message }));
}
