import { create } from "@bufbuild/protobuf";
import type { HandlerContext } from "@connectrpc/connect";
import { type Agent, AgentStatus, AgentVisibility } from "@depute/contracts/depute/registry/v1/agent_pb";
import {
  AgentChangeKind,
  type RegisterAgentRequest,
  RegisterAgentRequestSchema,
  type RegisterAgentResponse,
  RegisterAgentResponseSchema,
} from "@depute/contracts/depute/registry/v1/agent_service_pb";
import { DeputeError, ErrorReason, invalid } from "@depute/core";
import { sha256Hex } from "@depute/core/sha256";
import type { Identity } from "@depute/service";
import type { WriteTx } from "@depute/store";
import { announce, checkMayActFor, identify, type RegistryContext } from "../context.ts";
import { verifyEd25519 } from "../ed25519.ts";
import { repeatable } from "../idempotency.ts";
import { present, register, type StoredAgent, type VersionName } from "../rules/agent.ts";
import { overseerOf } from "../rules/bounds.ts";
import { checkEndpoints, endpointsOf } from "../rules/endpoints.ts";
import { inherit, MAX_INSTANCES } from "../rules/instances.ts";
import { checkOverseers } from "../rules/overseers.ts";
import { readOwnerCard } from "../rules/owner-card.ts";
import { checkPredicates } from "../rules/predicate.ts";
import { recordDigest } from "../rules/record-digest.ts";
import { baseOf, checkCard, checkOwnership, ownedBy, searchKeys } from "../rules/registration.ts";
import { checkStatement } from "../rules/statement.ts";
import { countInstances, findAgent, listInstances, putRecord } from "../store/agents.ts";
import { indexCapabilities } from "../store/capabilities.ts";
import { putLease } from "../store/leases.ts";
import { addMember, countMembers } from "../store/members.ts";
import { wasProven } from "../store/proofs.ts";
import { isMember } from "../store/sight.ts";
import { addVersion, findVersion, listVersions } from "../store/versions.ts";
import { checkBounds, isOperatorsChange } from "./check-bounds.ts";

const SCHEMAS = { request: RegisterAgentRequestSchema, answer: RegisterAgentResponseSchema };

/** Versions that are kept of one agent. */
export const MAX_VERSIONS = 10_000;

/** AgentService.RegisterAgent. */
export async function registerAgent(
  registry: RegistryContext,
  request: RegisterAgentRequest,
  context: HandlerContext,
): Promise<RegisterAgentResponse> {
  const identity = await identify(registry, context);
  const { agent: given, statement } = request;
  if (given === undefined) throw invalid("agent", "is required");
  const own = ownedBy(given, identity.principal);
  checkCard(own);
  checkRules(registry, own);
  const ownerCard = readOwnerCard(own, verifyEd25519);
  checkEndpoints([...endpointsOf(own), ...(ownerCard?.endpoints ?? [])], registry.endpointOrigins);
  const call = repeatable(SCHEMAS, identity.principal, request.requestId, request);
  const isProven = await registry.authorities.prove(own, context.signal);
  return registry.store.write(async (tx) => {
    const answered = await call.before(tx);
    if (answered !== undefined) return answered;
    const known = await findAgent(tx, given.id);
    const now = registry.clock.now();
    const isOperators = isOperatorsChange(registry, identity, given, known);
    const agent = isOperators ? given : own;
    const digest = digestOf(agent);
    if (!isOperators) {
      checkPossession(registry, identity, agent, statement, { digest, now, recordTime: known?.updateTime });
    }
    const baseId = baseOf(agent.id);
    const found = baseId === undefined ? undefined : await findAgent(tx, baseId);
    const base = found?.status === AgentStatus.REMOVED ? undefined : found;
    checkOwnership(agent.id, agent.principal, known?.record, base?.record);
    if (baseId !== undefined && known === undefined) await checkInstances(tx, baseId);
    await checkManifest(tx, agent);
    await join(tx, identity, agent, now);
    const version = await versionOf(tx, agent, known, digest);
    const stored = register(agent, known, now, version, base?.record);
    await checkBounds(registry, tx, identity, stored.record, known?.record ?? base?.record);
    await putRecord(tx, registry, stored);
    await registry.authorities.claim(tx, ownCard(agent, base), isProven);
    await reindex(tx, stored, known);
    await putLease(tx, registry, agent.id, stored.heartbeatTime, stored.expireTime);
    if (version.isNew) await addVersion(tx, { ...version, record: stored.own, createTime: now });
    if (baseId === undefined && known !== undefined) await passOn(registry, tx, stored, now);
    const answer = create(RegisterAgentResponseSchema, {
      agent: present(stored, await registry.guard.view(tx)),
    });
    await call.keep(tx, answer, now);
    const isNew = known === undefined || known.status === AgentStatus.REMOVED;
    const kind = isNew ? AgentChangeKind.REGISTERED : AgentChangeKind.UPDATED;
    await announce(registry, tx, kind, stored.record, known?.record);
    return answer;
  });
}

/** An instance that repeats its base's card has the base's URI, not one of its own. */
function ownCard(agent: Agent, base: StoredAgent | undefined): Agent {
  if (base?.record.card?.agentId !== agent.card?.agentId) return agent;
  const { card: _card, ...without } = agent;
  return without;
}

/** @throws DeputeError INVALID_REQUEST naming every predicate at fault */
function checkRules({ predicates }: RegistryContext, { manifest }: Agent): void {
  const problems = checkPredicates(manifest?.delegateRules ?? {}, predicates);
  if (problems.length === 0) return;
  const violations = problems.map(({ delegate, problem }) => ({
    field: `agent.manifest.delegate_rules["${delegate}"].predicate`,
    description: problem,
    reason: "agent.manifest.predicate",
  }));
  const summary = violations.map(({ field, description }) => `${field}: ${description}`).join("; ");
  throw new DeputeError(ErrorReason.INVALID_REQUEST, summary, { violations });
}

function digestOf(agent: Agent): string {
  try {
    return recordDigest(agent, sha256Hex);
  } catch {
    throw invalid("agent", "holds a number or a text without a JSON form");
  }
}

/** A caller proves to hold the agent's key by being its principal, or by a statement that the key has signed. */
function checkPossession(
  registry: RegistryContext,
  identity: Identity,
  agent: Agent,
  statement: string,
  about: { digest: string; now: number; recordTime: number | undefined },
): void {
  const { id: agentId, principal } = agent;
  if (statement !== "" && principal !== "") {
    checkStatement(statement, { ...about, agentId, principal, audience: registry.publicUrl }, verifyEd25519);
    return;
  }
  checkMayActFor(identity, principal, "agent.principal");
  if (registry.proofRequired && principal !== "" && identity.principal !== principal) {
    throw new DeputeError(ErrorReason.CALLER_NOT_ALLOWED, "a statement of the agent's key is required", {
      violations: [{ field: "statement", description: "is required" }],
    });
  }
}

async function checkInstances(tx: WriteTx, baseId: string): Promise<void> {
  if ((await countInstances(tx, baseId)) < MAX_INSTANCES) return;
  throw new DeputeError(ErrorReason.LIMIT_EXCEEDED, `${baseId} has as many instances as an agent may have`, {
    metadata: { limit: "agent_instances", max: String(MAX_INSTANCES) },
  });
}

async function checkManifest(tx: WriteTx, agent: Agent): Promise<void> {
  await checkOverseers(agent.id, overseerOf(agent.manifest) || undefined, async (id) => {
    const overseer = await findAgent(tx, id);
    return overseerOf(overseer?.record.manifest) || undefined;
  });
}

/**
 * Founds an organization that has no members, and keeps strangers from registering what only its members see. One that an
 * operator has proven is not founded again.
 */
async function join(tx: WriteTx, identity: Identity, agent: Agent, now: number): Promise<void> {
  const { organization, principal, visibility } = agent;
  const forMembers = visibility === AgentVisibility.ORGANIZATION;
  if (organization === "") {
    if (forMembers && baseOf(agent.id) === undefined)
      throw invalid("agent.organization", "is required for this visibility");
    return;
  }
  const isEmpty = principal !== "" && (await countMembers(tx, organization, 1)) === 0;
  if (isEmpty && !(await wasProven(tx, organization))) {
    await addMember(tx, organization, { principal, admittedBy: principal, createTime: now });
    return;
  }
  if (!forMembers || identity.local || (await isMember(tx, organization, principal))) return;
  throw new DeputeError(ErrorReason.CALLER_NOT_ALLOWED, "only members of the organization may do this", {
    violations: [{ field: "agent.organization", description: "the principal is no member of it" }],
  });
}

/**
 * The version that a registration makes, or the one that has this content: an agent that registers at each start leaves no
 * trail of equal versions, and one that goes back to an earlier version of its own is at that one again.
 *
 * @throws DeputeError AGENT_VERSION_EXISTS, LIMIT_EXCEEDED
 */
async function versionOf(
  tx: WriteTx,
  { id, version }: Agent,
  known: StoredAgent | undefined,
  digest: string,
): Promise<VersionName & { isNew: boolean }> {
  if (known !== undefined && known.digest === digest)
    return { revision: known.revision, digest, isNew: false };
  const before = version === "" ? undefined : await findVersion(tx, id, { version });
  if (before?.digest === digest) return { revision: before.revision, digest, isNew: false };
  if (before !== undefined) {
    throw new DeputeError(ErrorReason.AGENT_VERSION_EXISTS, `${id}@${version} has another content`, {
      metadata: { agent: id, version },
      violations: [{ field: "agent.version", description: "was registered with another content" }],
    });
  }
  return { revision: await nextRevision(tx, id), digest, isNew: true };
}

/** The number of an agent's next version. @throws DeputeError LIMIT_EXCEEDED */
export async function nextRevision(tx: WriteTx, id: string): Promise<number> {
  const [latest] = await listVersions(tx, id, Number.MAX_SAFE_INTEGER, 1);
  const revision = (latest?.revision ?? 0) + 1;
  if (revision <= MAX_VERSIONS) return revision;
  throw new DeputeError(ErrorReason.LIMIT_EXCEEDED, `${id} has as many versions as an agent may have`, {
    metadata: { limit: "agent_versions", max: String(MAX_VERSIONS) },
  });
}

/** Gives the instances of a base what they have from it. */
async function passOn(registry: RegistryContext, tx: WriteTx, base: StoredAgent, now: number): Promise<void> {
  for (const instance of await listInstances(tx, base.record.id, MAX_INSTANCES)) {
    const changed = { ...instance, record: inherit(instance.own, base.record), updateTime: now };
    await putRecord(tx, registry, changed);
    await reindex(tx, changed, instance);
    await announce(registry, tx, AgentChangeKind.UPDATED, changed.record, instance.record);
  }
}

/** Makes the agent's capabilities found by what it says now, where that changed. */
async function reindex(tx: WriteTx, { record }: StoredAgent, known: StoredAgent | undefined): Promise<void> {
  if (known === undefined || known.capabilityIds.length === 0) return;
  const [keys, before] = [searchKeys(record), searchKeys(known.record)];
  const same = keys.length === before.length && keys.every((key, i) => key === before[i]);
  if (!same) await indexCapabilities(tx, record.id, keys);
}
