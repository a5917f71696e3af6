import { create, fromJson } from "@bufbuild/protobuf";
import { ValueSchema } from "@bufbuild/protobuf/wkt";
import type { TaskContract } from "@depute/contracts/delegateos/v0/contract_pb";
import {
  type DelegateParams,
  type DelegateResult,
  DelegateResultSchema,
} from "@depute/contracts/delegateos/v0/jsonrpc_pb";
import { CapabilitySchema, SerializedDCTSchema } from "@depute/contracts/delegateos/v0/token_pb";
import { type Agent, AgentHealth, AgentStatus } from "@depute/contracts/depute/registry/v1/agent_pb";
import type { InspectTokenResponse } from "@depute/contracts/depute/tokens/v1/token_service_pb";
import { type Clock, ErrorReason, invalid, parseTime, reasonName } from "@depute/core";
import { denialWord } from "@depute/service";
import type { Clients } from "../../src/clients.ts";
import { refusalIn } from "../../src/fault.ts";
import type { WireCall } from "../../src/wire-call.ts";
import { asDenial, grantedTo } from "./errors.ts";
import { declaredRights, type Estimates, estimate } from "./estimates.ts";

/** The parent of a delegation that begins a chain (DelegateOS 8.1). */
const ROOT_DELEGATION = "del_000000000000";
/** The longest that a task may take, in milliseconds. */
const LONGEST_MS = 30 * 24 * 3_600_000;
/** Work that is described in words runs no capability. */
const FREE_WORK = "-";

/** A delegation that is turned down, in the words of its result (DelegateOS 9.3). */
class TurnedDown extends Error {
  readonly reason: string;

  constructor(reason: string, details: string) {
    super(details);
    this.reason = reason;
  }
}

/**
 * delegateos/delegate (DelegateOS 9.1): hands the contract's work to the agent that the token was narrowed to.
 *
 * The token is looked at before the contract is stored, so that only somebody with a genuine token for the very contract
 * can have one stored. The last call, with the caller's own credentials, creates the task; everything before it can be
 * repeated.
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
    await known(clients, params, call);
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

/** What the token says, if its chain is sound and it is for this contract. */
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

/** Has the token's delegations recorded, so that the worker can complete the last one. (DelegateOS 8) */
async function known({ tokens }: Clients, { dct, dctFormat }: DelegateParams, call: WireCall): Promise<void> {
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

/** The ids beside the token must be the token's own. @throws DeputeError INVALID_REQUEST */
function assertNamed(params: DelegateParams, { blocks, result }: InspectTokenResponse): void {
  if (blocks.at(-1)?.delegationId !== params.delegationId) {
    throw invalid("/delegationId", "is not the token's last delegation");
  }
  const isRoot = result.case === "scope" && result.value.chainDepth === 0n;
  const parent = blocks.at(-2)?.delegationId ?? (isRoot ? ROOT_DELEGATION : params.parentDelegationId);
  if (parent !== params.parentDelegationId) {
    throw invalid("/parentDelegationId", "is not the delegation above the token's last one");
  }
}

/** A contract that can no longer be kept is not begun. */
function assertInTime({ constraints }: TaskContract, clock: Clock): void {
  const deadlineMs = parseTime(constraints?.deadline ?? "");
  if (deadlineMs !== undefined && deadlineMs > clock.now()) return;
  throw new TurnedDown("deadline_exceeded", "the contract's deadline has passed");
}

/** The living agent of a key: one that has sent heartbeats before one that has sent none, and the first by its id of several. */
async function delegatee({ agents }: Clients, principal: string, call: WireCall): Promise<Agent> {
  for (const health of [AgentHealth.ALIVE, AgentHealth.UNKNOWN]) {
    const asked = { status: AgentStatus.ACTIVE, health, principal, pageSize: 1 };
    const [agent] = (await agents.listAgents(asked, call.aside)).agents;
    if (agent !== undefined) return agent;
  }
  throw new TurnedDown("agent_not_found", "no living agent has the key that the token was handed to");
}

/** An agent that says which rights it works with is held to them; one that says nothing is taken at its token. */
function assertSupported(agent: Agent, contract: TaskContract): void {
  const declared = declaredRights(agent);
  if (declared.size === 0) return;
  const lacking = (contract.constraints?.requiredCapabilities ?? []).find((right) => !declared.has(right));
  if (lacking === undefined) return;
  throw new TurnedDown("capability_mismatch", `Agent does not support ${lacking}`);
}

/** Work that would cost more than its contract allows is not begun. */
function assertPayable({ costMicrocents }: Estimates, { constraints }: TaskContract): void {
  const most = constraints?.maxBudgetMicrocents ?? 0n;
  if (costMicrocents === undefined || costMicrocents <= most) return;
  throw new TurnedDown(
    "budget_exceeded",
    `the agent's price is ${costMicrocents} microcents, the contract allows ${most}`,
  );
}

/** Creates the task, once for each delegation. */
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

/** From the contract's beginning to its deadline, so that a repeated request asks for the same. */
function allowedMs({ createdAt, constraints }: TaskContract): number {
  const from = parseTime(createdAt) ?? 0;
  const to = parseTime(constraints?.deadline ?? "") ?? 0;
  return Math.min(Math.max(to - from, 1000), LONGEST_MS);
}

/** What says no to the contract or the token turns the delegation down; anything else is an error of the call. */
const TURNING_DOWN: ReadonlySet<ErrorReason> = new Set([
  ErrorReason.INVALID_REQUEST,
  ErrorReason.SIGNATURE_INVALID,
  ErrorReason.CONTRACT_EXISTS,
  ErrorReason.SCHEMA_INVALID,
  ErrorReason.UNKNOWN_CHECK,
  ErrorReason.UNSUPPORTED_PATTERN,
]);

/** What keeps a token from being recorded, in the words of a result. */
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
