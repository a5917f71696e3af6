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
import { isPurged, type WriteTx } from "@depute/store";
import { checkMayActFor, identify, type RegistryContext, recordChange } from "../context.ts";
import { verifyEd25519 } from "../ed25519.ts";
import { idempotentCall } from "../idempotency.ts";
import { requireA2aInterface } from "../rules/a2a-endpoint.ts";
import { createStoredAgent, type StoredAgent, toAgentMessage, type VersionIdentity } from "../rules/agent.ts";
import { overseerOf } from "../rules/bounds.ts";
import { checkEndpoints, endpointsOf } from "../rules/endpoints.ts";
import { inherit, MAX_INSTANCES } from "../rules/instances.ts";
import { checkOverseers } from "../rules/overseers.ts";
import { readOwnerCard } from "../rules/owner-card.ts";
import { checkPredicates } from "../rules/predicate.ts";
import { recordDigest } from "../rules/record-digest.ts";
import {
  baseOf,
  checkCard,
  checkOwnership,
  searchKeys,
  withDefaultPrincipal,
} from "../rules/registration.ts";
import { checkStatement } from "../rules/statement.ts";
import { countInstances, findAgent, listInstances, putRecord } from "../store/agents.ts";
import { indexCapabilities } from "../store/capabilities.ts";
import { putLease } from "../store/leases.ts";
import { addMember, countMembers } from "../store/members.ts";
import { wasProven } from "../store/proofs.ts";
import { addVersion, findVersion, listVersions } from "../store/versions.ts";
import { isMember } from "../store/visibility.ts";
import { checkBounds, isBoundsOperatorChange } from "./check-bounds.ts";

const SCHEMAS = { request: RegisterAgentRequestSchema, answer: RegisterAgentResponseSchema };

/** Maximum number of versions of one agent. */
export const MAX_VERSIONS = 10_000;

/** Implements AgentService.RegisterAgent. */
export async function registerAgent(
  registry: RegistryContext,
  request: RegisterAgentRequest,
  context: HandlerContext,
): Promise<RegisterAgentResponse> {
  const identity = await identify(registry, context);
  const { agent: requested, statement } = request;
  if (requested === undefined) throw invalid("agent", "is required");
  const agentDraft = withDefaultPrincipal(requested, identity.principal);
  checkCard(agentDraft);
  checkManifestPredicates(registry, agentDraft);
  const ownerCard = readOwnerCard(agentDraft, verifyEd25519);
  const a2aInterface = requireA2aInterface(agentDraft);
  const endpoints = [...endpointsOf(agentDraft, a2aInterface), ...(ownerCard?.endpoints ?? [])];
  checkEndpoints(endpoints, registry.endpointOrigins);
  const call = idempotentCall(SCHEMAS, identity.principal, request.requestId, request);
  const isProven = await registry.authorities.prove(agentDraft, context.signal);
  return registry.store.write(async (tx) => {
    const earlierAnswer = await call.findAnswer(tx);
    if (earlierAnswer !== undefined) return earlierAnswer;
    const existing = await findAgent(tx, requested.id);
    if (existing === undefined) await requireUnpurged(tx, requested.id);
    const now = registry.clock.now();
    const isByBoundsOperator = isBoundsOperatorChange(registry, identity, requested, existing);
    const agent = isByBoundsOperator ? requested : agentDraft;
    const digest = recordDigestOf(agent);
    if (!isByBoundsOperator) {
      checkPossession(registry, identity, agent, statement, {
        digest,
        now,
        recordTime: existing?.updateTime,
      });
    }
    const stored = await storeRegistration(registry, tx, identity, agent, existing, {
      digest,
      isProven,
      now,
    });
    const answer = create(RegisterAgentResponseSchema, {
      agent: toAgentMessage(stored, await registry.guard.view(tx)),
    });
    await call.storeAnswer(tx, answer, now);
    return answer;
  });
}

/**
 * Requires that no agent with this id was purged.
 *
 * @throws DeputeError AGENT_EXISTS
 */
async function requireUnpurged(tx: WriteTx, id: string): Promise<void> {
  if (!(await isPurged(tx, "agent", id))) return;
  throw new DeputeError(ErrorReason.AGENT_EXISTS, `the id ${id} belonged to a purged agent; use another id`, {
    metadata: { agent: id },
    violations: [{ field: "agent.id", description: "belonged to a purged agent" }],
  });
}

/**
 * Checks a registration against the stored records, and stores it.
 *
 * @param existing the last record of the id; undefined for a new id
 * @param facts the record's digest, whether the domain of the agent's URI publishes the agent's key, and the time in
 * epoch milliseconds
 * @throws DeputeError AGENT_BOUNDS_WIDENED, AGENT_EXISTS, AGENT_VERSION_EXISTS, CALLER_NOT_ALLOWED, INVALID_REQUEST,
 * LIMIT_EXCEEDED
 */
export async function storeRegistration(
  registry: RegistryContext,
  tx: WriteTx,
  identity: Identity,
  agent: Agent,
  existing: StoredAgent | undefined,
  { digest, isProven, now }: { digest: string; isProven: boolean; now: number },
): Promise<StoredAgent> {
  const baseId = baseOf(agent.id);
  const baseAgent = baseId === undefined ? undefined : await findAgent(tx, baseId);
  const base = baseAgent?.status === AgentStatus.REMOVED ? undefined : baseAgent;
  checkOwnership(agent.id, agent.principal, existing?.record, base?.record);
  if (baseId !== undefined && existing === undefined) await checkInstances(tx, baseId);
  await checkManifest(tx, agent);
  await joinOrganization(tx, identity, agent, now);
  const version = await resolveVersion(tx, agent, existing, digest);
  const stored = createStoredAgent(agent, existing, now, version, base?.record);
  await checkBounds(registry, tx, identity, stored.record, existing?.record ?? base?.record);
  await putRecord(tx, registry, stored);
  await registry.authorities.claim(tx, withoutBaseUri(agent, base), isProven);
  await reindex(tx, stored, existing);
  await putLease(tx, registry, agent.id, stored.heartbeatTime, stored.expireTime);
  if (version.isNew) await addVersion(tx, { ...version, record: stored.ownerMembers, createTime: now });
  if (baseId === undefined && existing !== undefined) await updateInstances(registry, tx, stored, now);
  const isNew = existing === undefined || existing.status === AgentStatus.REMOVED;
  const kind = isNew ? AgentChangeKind.REGISTERED : AgentChangeKind.UPDATED;
  await recordChange(registry, tx, kind, stored.record, existing?.record);
  return stored;
}

/**
 * Returns the agent, but without its card if the card has the URI of the agent's base. A URI belongs to only one
 * agent, and this URI belongs to the base.
 */
function withoutBaseUri(agent: Agent, base: StoredAgent | undefined): Agent {
  if (base?.record.card?.agentId !== agent.card?.agentId) return agent;
  const { card: _card, ...without } = agent;
  return without;
}

/**
 * Checks the predicates of an agent's manifest.
 *
 * @throws DeputeError INVALID_REQUEST naming every predicate at fault
 */
export function checkManifestPredicates({ predicates }: RegistryContext, { manifest }: Agent): void {
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

export function recordDigestOf(agent: Agent): string {
  try {
    return recordDigest(agent, sha256Hex);
  } catch {
    throw invalid("agent", "contains a number or a string without a JSON form");
  }
}

/**
 * Requires proof that the registrant has the agent's key. Either the caller is the key's principal, or the request
 * contains a statement that the key signed. The caller `local` needs no proof, unless `proofRequired` is true. A
 * statement in the request must always be valid.
 *
 * @throws DeputeError CALLER_NOT_ALLOWED, SIGNATURE_INVALID
 */
function checkPossession(
  registry: RegistryContext,
  identity: Identity,
  agent: Agent,
  statement: string,
  publication: { digest: string; now: number; recordTime: number | undefined },
): void {
  const { id: agentId, principal } = agent;
  if (statement !== "" && principal !== "") {
    checkStatement(
      statement,
      { ...publication, agentId, principal, audience: registry.publicUrl },
      verifyEd25519,
    );
    return;
  }
  checkMayActFor(identity, principal, "agent.principal");
  if (registry.proofRequired && principal !== "" && identity.principal !== principal) {
    throw new DeputeError(
      ErrorReason.CALLER_NOT_ALLOWED,
      "a registration statement is required; sign it with the agent's key, or call as the agent's principal",
      {
        violations: [{ field: "statement", description: "is required" }],
      },
    );
  }
}

async function checkInstances(tx: WriteTx, baseId: string): Promise<void> {
  if ((await countInstances(tx, baseId)) < MAX_INSTANCES) return;
  throw new DeputeError(
    ErrorReason.LIMIT_EXCEEDED,
    `${baseId} has reached the limit of instances; use an existing instance`,
    {
      metadata: { limit: "agent_instances", max: String(MAX_INSTANCES) },
    },
  );
}

/**
 * Requires that the chain of overseers does not lead back to the agent.
 *
 * @throws DeputeError INVALID_REQUEST
 */
export async function checkManifest(tx: WriteTx, agent: Agent): Promise<void> {
  await checkOverseers(agent.id, overseerOf(agent.manifest) || undefined, async (id) => {
    const overseer = await findAgent(tx, id);
    return overseerOf(overseer?.record.manifest) || undefined;
  });
}

/**
 * Makes the agent's principal the founding member, if the organization has no members and never had an operator's
 * proof. Otherwise, only a member or `local` may register an agent whose visibility is limited to members.
 *
 * @throws DeputeError CALLER_NOT_ALLOWED; INVALID_REQUEST for this visibility without an organization
 */
async function joinOrganization(tx: WriteTx, identity: Identity, agent: Agent, now: number): Promise<void> {
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
  throw new DeputeError(
    ErrorReason.CALLER_NOT_ALLOWED,
    "only members of the organization may register this agent; let a member admit the principal",
    {
      violations: [{ field: "agent.organization", description: "the principal is not a member" }],
    },
  );
}

/**
 * Returns the version of a registration. Unchanged content keeps its version, so an agent that registers at every
 * start creates no new version. Content that equals an earlier version of the same name gets that version again.
 *
 * @throws DeputeError AGENT_VERSION_EXISTS, LIMIT_EXCEEDED
 */
async function resolveVersion(
  tx: WriteTx,
  { id, version }: Agent,
  previous: StoredAgent | undefined,
  digest: string,
): Promise<VersionIdentity & { isNew: boolean }> {
  if (previous !== undefined && previous.digest === digest)
    return { revision: previous.revision, digest, isNew: false };
  const before = version === "" ? undefined : await findVersion(tx, id, { version });
  if (before?.digest === digest) return { revision: before.revision, digest, isNew: false };
  if (before !== undefined) {
    throw new DeputeError(
      ErrorReason.AGENT_VERSION_EXISTS,
      `${id}@${version} has different content; register it under a new version`,
      {
        metadata: { agent: id, version },
        violations: [{ field: "agent.version", description: "was registered with different content" }],
      },
    );
  }
  return { revision: await nextRevision(tx, id), digest, isNew: true };
}

/**
 * Returns the number of an agent's next version.
 *
 * @throws DeputeError LIMIT_EXCEEDED
 */
export async function nextRevision(tx: WriteTx, id: string): Promise<number> {
  const [latest] = await listVersions(tx, id, Number.MAX_SAFE_INTEGER, 1);
  const revision = (latest?.revision ?? 0) + 1;
  if (revision <= MAX_VERSIONS) return revision;
  throw new DeputeError(
    ErrorReason.LIMIT_EXCEEDED,
    `${id} has reached the limit of versions; register a new agent`,
    {
      metadata: { limit: "agent_versions", max: String(MAX_VERSIONS) },
    },
  );
}

/** Computes the effective records of a base's instances again, after a change of the base. */
async function updateInstances(
  registry: RegistryContext,
  tx: WriteTx,
  base: StoredAgent,
  now: number,
): Promise<void> {
  for (const instance of await listInstances(tx, base.record.id, MAX_INSTANCES)) {
    const changed = { ...instance, record: inherit(instance.ownerMembers, base.record), updateTime: now };
    await putRecord(tx, registry, changed);
    await reindex(tx, changed, instance);
    await recordChange(registry, tx, AgentChangeKind.UPDATED, changed.record, instance.record);
  }
}

/** Updates the index of the agent's capabilities if the agent's search keys changed. */
async function reindex(
  tx: WriteTx,
  { record }: StoredAgent,
  previous: StoredAgent | undefined,
): Promise<void> {
  if (previous === undefined || previous.capabilityIds.length === 0) return;
  const [keys, before] = [searchKeys(record), searchKeys(previous.record)];
  const same = keys.length === before.length && keys.every((key, i) => key === before[i]);
  if (!same) await indexCapabilities(tx, record.id, keys);
}
