import { create, fromJson } from "@bufbuild/protobuf";
import { ValueSchema } from "@bufbuild/protobuf/wkt";
import type { TaskContract } from "@depute/contracts/delegateos/v0/contract_pb";
import {
  type DelegateParams,
  type DelegateResult,
  DelegateResultSchema,
} from "@depute/contracts/delegateos/v0/delegateos_jsonrpc_pb";
import { CapabilitySchema, SerializedDCTSchema } from "@depute/contracts/delegateos/v0/token_pb";
import { type Agent, AgentHealth, AgentStatus } from "@depute/contracts/depute/registry/v1/agent_pb";
import type { InspectTokenResponse } from "@depute/contracts/depute/tokens/v1/token_service_pb";
import { type Clock, ErrorReason, invalid, parseTime, reasonName } from "@depute/core";
import { denialWord } from "@depute/service";
import type { Clients } from "../../edge/clients.ts";
import { refusalIn } from "../../edge/fault.ts";
import type { WireCall } from "../../edge/wire-call.ts";
import { asDenial, grantedTo } from "./errors.ts";
import { declaredRights, type Estimates, estimate } from "./estimates.ts";

/** The parent id of the first delegation in a chain (DelegateOS 8.1). */
const ROOT_DELEGATION = "del_000000000000";
/** Maximum duration of a task in milliseconds. */
const LONGEST_MS = 30 * 24 * 3_600_000;
/**
 * The last part of the resource in a denial, in place of a capability: a description, and not a capability, defines
 * the task.
 */
const FREE_WORK = "-";

/** Thrown to decline a delegation. The message becomes the reason in the result (DelegateOS 9.3). */
class TurnedDown extends Error {
  readonly reason: string;

  constructor(reason: string, details: string) {
    super(details);
    this.reason = reason;
  }
}

/**
 * delegateos/delegate (DelegateOS 9.1): creates a task for the contract's work. The task's agent is the one that holds
 * the attenuated token. The token is checked first, so that a contract is stored only if its token is valid. Only the
 * last call, which creates the task, uses the request's holder proof. All earlier calls can be repeated without harm.
 *
 * @throws DeputeError; WireFault when the caller's own token is denied
 */
export async function delegate(
  clients: Clients,
  clock: Clock,
  params: DelegateParams,
  call: WireCall,
): Promise<DelegateResult> {
  const { contract, delegationId } = params;
  if (contract === undefined) throw new Error("valid parameters have a contract");
  try {
    const token = await soundToken(clients, params, contract, call);
    assertNamed(params, token);
    assertInTime(contract, clock);
    const agent = await delegatee(clients, token.delegatee, call);
    assertSupported(agent, contract);
    const estimates = await estimate(clients, clock, agent, contract, call);
    assertPayable(estimates, contract);
    await turningDown(clients.contracts.createContract({ contract }, call.aside));
    await inspectToken(clients, params, call);
    await handOver(clients, params, contract, agent, call);
    return create(DelegateResultSchema, {
      accepted: true,
      delegationId,
      ...(estimates.durationMs !== undefined && { estimatedDurationMs: estimates.durationMs }),
      ...(estimates.costMicrocents !== undefined && { estimatedCostMicrocents: estimates.costMicrocents }),
    });
  } catch (thrown) {
    if (!(thrown instanceof TurnedDown)) throw thrown;
    const { reason, message: details } = thrown;
    return create(DelegateResultSchema, { accepted: false, reason, details });
  }
}

/**
 * Returns the verified content of the token. Throws TurnedDown if the chain is invalid, or if the token names another
 * contract.
 */
async function soundToken(
  { tokens }: Clients,
  { dct, dctFormat }: DelegateParams,
  contract: TaskContract,
  call: WireCall,
): Promise<InspectTokenResponse> {
  const inspected = await turningDown(
    tokens.inspectToken(
      {
        token: create(SerializedDCTSchema, { token: dct, format: dctFormat }),
        contractId: contract.id,
        requiredCapabilities: contract.constraints?.requiredCapabilities ?? [],
      },
      call.aside,
    ),
  );
  const { result } = inspected;
  if (result.case === "scope") return inspected;
  const type = denialWord(result.value?.type ?? 0);
  throw new TurnedDown(type, result.value?.detail ?? `the token is denied: ${type}`);
}

/** Records the delegations of the token, so that the worker can later complete the last of them. (DelegateOS 8) */
async function inspectToken(
  { tokens }: Clients,
  { dct, dctFormat }: DelegateParams,
  call: WireCall,
): Promise<void> {
  const token = create(SerializedDCTSchema, { token: dct, format: dctFormat });
  try {
    await tokens.recordToken({ token }, call.aside);
  } catch (thrown) {
    const { reason, message, metadata } = refusalIn(thrown);
    const word = reason === ErrorReason.TOKEN_DENIED ? metadata.denial : RECORDING.get(reason);
    if (word === undefined) throw thrown;
    throw new TurnedDown(word, message);
  }
}

/**
 * Throws unless the ids in the parameters are equal to those in the token.
 *
 * @throws DeputeError INVALID_REQUEST
 */
function assertNamed(params: DelegateParams, { blocks, result }: InspectTokenResponse): void {
  if (blocks.at(-1)?.delegationId !== params.delegationId) {
    throw invalid("/delegationId", "must be the token's last delegation");
  }
  const isRoot = result.case === "scope" && result.value.chainDepth === 0n;
  const parent = blocks.at(-2)?.delegationId ?? (isRoot ? ROOT_DELEGATION : params.parentDelegationId);
  if (parent !== params.parentDelegationId) {
    throw invalid("/parentDelegationId", "must be the delegation above the token's last delegation");
  }
}

/** Throws TurnedDown if the contract's deadline has passed. */
function assertInTime({ constraints }: TaskContract, clock: Clock): void {
  const deadlineMs = parseTime(constraints?.deadline ?? "");
  if (deadlineMs !== undefined && deadlineMs > clock.now()) return;
  throw new TurnedDown("deadline_exceeded", "the contract's deadline has passed");
}

/**
 * Finds the active agent of a key. If the key has several agents, those that send heartbeats have priority. Of these,
 * the function returns the agent whose id comes first. Throws TurnedDown if the key has no live agent.
 */
async function delegatee({ agents }: Clients, principal: string, call: WireCall): Promise<Agent> {
  for (const health of [AgentHealth.ALIVE, AgentHealth.UNKNOWN]) {
    const agentQuery = { status: AgentStatus.ACTIVE, health, principal, pageSize: 1 };
    const [agent] = (await agents.listAgents(agentQuery, call.aside)).agents;
    if (agent !== undefined) return agent;
  }
  throw new TurnedDown("agent_not_found", "no live agent has the key of the token's last delegatee");
}

/**
 * Throws TurnedDown if the agent does not declare the DelegateOS capabilities that the contract needs. An agent that
 * declares no such capability is accepted.
 */
function assertSupported(agent: Agent, contract: TaskContract): void {
  const declared = declaredRights(agent);
  if (declared.size === 0) return;
  const lackingRight = (contract.constraints?.requiredCapabilities ?? []).find(
    (right) => !declared.has(right),
  );
  if (lackingRight === undefined) return;
  throw new TurnedDown("capability_mismatch", `Agent does not support ${lackingRight}`);
}

/** Throws TurnedDown if the work would cost more than the contract allows. */
function assertPayable({ costMicrocents }: Estimates, { constraints }: TaskContract): void {
  const most = constraints?.maxBudgetMicrocents ?? 0n;
  if (costMicrocents === undefined || costMicrocents <= most) return;
  throw new TurnedDown(
    "budget_exceeded",
    `the agent's price is ${costMicrocents} microcents, but the contract allows ${most}`,
  );
}

/** Creates the task. A repeated call for the same delegation does not create another task. */
async function handOver(
  clients: Clients,
  { dct, delegationId }: DelegateParams,
  contract: TaskContract,
  agent: Agent,
  call: WireCall,
): Promise<void> {
  const draft = {
    externalId: delegationId,
    agentId: agent.id,
    description: contract.task?.description ?? "",
    input: fromJson(ValueSchema, contract.task?.inputs ?? {}),
    contractId: contract.id,
    workerToken: dct,
    limits: { total: { seconds: BigInt(Math.ceil(allowedMs(contract) / 1000)) } },
  };
  try {
    await clients.tasks.createTask({ requestId: delegationId, draft }, call.asCaller);
  } catch (thrown) {
    const { reason, message } = refusalIn(thrown);
    if (reason === ErrorReason.AGENT_NOT_FOUND || TURNING_DOWN.has(reason)) {
      throw new TurnedDown(reasonName(reason).toLowerCase(), message);
    }
    const right = { namespace: "depute:tasks", action: "delegate", resource: `${agent.id}/${FREE_WORK}` };
    throw asDenial(thrown, create(CapabilitySchema, right), await grantedTo(clients, thrown, call));
  }
}

/**
 * Returns the milliseconds from the contract's creation to its deadline, at least 1,000 and at most LONGEST_MS. The
 * function does not use the current time, so that a repeated request has the same content.
 */
function allowedMs({ createdAt, constraints }: TaskContract): number {
  const from = parseTime(createdAt) ?? 0;
  const to = parseTime(constraints?.deadline ?? "") ?? 0;
  return Math.min(Math.max(to - from, 1000), LONGEST_MS);
}

/**
 * The reasons that concern the contract or the token. For such a reason, the call succeeds and its result states that
 * the delegation was declined. For every other reason, the call fails.
 */
const TURNING_DOWN: ReadonlySet<ErrorReason> = new Set([
  ErrorReason.INVALID_REQUEST,
  ErrorReason.SIGNATURE_INVALID,
  ErrorReason.CONTRACT_EXISTS,
  ErrorReason.SCHEMA_INVALID,
  ErrorReason.UNKNOWN_CHECK,
  ErrorReason.UNSUPPORTED_PATTERN,
]);

/** For each reason why a token cannot be recorded, the text in the result. */
const RECORDING: ReadonlyMap<ErrorReason, string> = new Map([
  [ErrorReason.TOKEN_MALFORMED, "malformed_token"],
  [ErrorReason.DELEGATION_INVALID, "delegation_invalid"],
]);

async function turningDown<T>(answer: Promise<T>): Promise<T> {
  try {
    return await answer;
  } catch (thrown) {
    const { reason, message } = refusalIn(thrown);
    if (reason === ErrorReason.TOKEN_MALFORMED) throw new TurnedDown("malformed_token", message);
    if (TURNING_DOWN.has(reason)) throw new TurnedDown(reasonName(reason).toLowerCase(), message);
    throw thrown;
  }
}
