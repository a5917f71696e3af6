import { create } from "@bufbuild/protobuf";
import type { HandlerContext } from "@connectrpc/connect";
import {
  AgentChangeKind,
  type ReplacePrincipalRequest,
  type ReplacePrincipalResponse,
  ReplacePrincipalResponseSchema,
} from "@depute/contracts/depute/registry/v1/agent_service_pb";
import { invalid } from "@depute/core";
import { sha256Hex } from "@depute/core/sha256";
import type { WriteTx } from "@depute/store";
import { agentNotFound, identify, type RegistryContext, recordChange } from "../context.ts";
import { verifyEd25519 } from "../ed25519.ts";
import { type StoredAgent, toAgentMessage } from "../rules/agent.ts";
import { inherit, MAX_INSTANCES } from "../rules/instances.ts";
import { recordDigest } from "../rules/record-digest.ts";
import { baseOf } from "../rules/registration.ts";
import { withPrincipal } from "../rules/replacement.ts";
import { checkReplacement } from "../rules/statement.ts";
import { findAgent, listInstances, putRecord } from "../store/agents.ts";
import { addMember } from "../store/members.ts";
import { addVersion } from "../store/versions.ts";
import { isMember } from "../store/visibility.ts";
import { checkBounds } from "./check-bounds.ts";
import { moveProofs } from "./organization-proofs.ts";
import { nextRevision } from "./register-agent.ts";

/** Implements AgentService.ReplacePrincipal. */
export async function replacePrincipal(
  registry: RegistryContext,
  request: ReplacePrincipalRequest,
  context: HandlerContext,
): Promise<ReplacePrincipalResponse> {
  const identity = await identify(registry, context);
  const { agentId: id, replaced, principal } = request;
  if (principal === replaced) throw invalid("principal", "equals the replaced principal");
  if (baseOf(id) !== undefined) throw invalid("agent_id", "is an instance; replace the key of its base");
  const agent = await registry.store.write(async (tx) => {
    const view = await registry.guard.view(tx);
    const existing = await findAgent(tx, id);
    const isDone = existing?.record.principal === principal;
    checkBothStatements(registry, request, isDone ? undefined : existing?.updateTime);
    if (existing === undefined || (!isDone && existing.record.principal !== replaced))
      throw agentNotFound(id);
    if (isDone) return toAgentMessage(existing, view);
    await checkBounds(registry, tx, identity, withPrincipal(existing.record, principal), existing.record);
    const changed = await replace(registry, tx, existing, principal);
    await moveProofs(tx, replaced, principal, registry.clock.now());
    for (const instance of await listInstances(tx, id, MAX_INSTANCES)) {
      if (instance.ownerMembers.principal === replaced)
        await replace(registry, tx, instance, principal, changed);
    }
    return toAgentMessage(changed, view);
  });
  return create(ReplacePrincipalResponseSchema, { agent });
}

/** Requires the statements of both keys: the replaced key releases the agent, and the new key accepts it. */
function checkBothStatements(
  registry: RegistryContext,
  request: ReplacePrincipalRequest,
  recordTime: number | undefined,
): void {
  const { agentId, replaced: from, principal: to } = request;
  const now = registry.clock.now();
  const expected = { agentId, from, to, audience: registry.publicUrl, now, recordTime };
  checkReplacement(request.replacedStatement, "from", expected, verifyEd25519);
  checkReplacement(request.principalStatement, "to", expected, verifyEd25519);
}

async function replace(
  registry: RegistryContext,
  tx: WriteTx,
  existing: StoredAgent,
  principal: string,
  base?: StoredAgent,
): Promise<StoredAgent> {
  const now = registry.clock.now();
  const newOwnerMembers = withPrincipal(existing.ownerMembers, principal);
  const record = base === undefined ? newOwnerMembers : inherit(newOwnerMembers, base.record);
  const revision = await nextRevision(tx, newOwnerMembers.id);
  const digest = recordDigest(newOwnerMembers, sha256Hex);
  const changed: StoredAgent = {
    ...existing,
    ownerMembers: newOwnerMembers,
    record,
    revision,
    digest,
    updateTime: now,
  };
  await putRecord(tx, registry, changed);
  await addVersion(tx, { revision, digest, record: newOwnerMembers, createTime: now });
  await admitNewKey(tx, existing, principal, now);
  await registry.authorities.replace(tx, existing.ownerMembers, existing.record.principal, principal);
  await recordChange(registry, tx, AgentChangeKind.UPDATED, record, existing.record);
  return changed;
}

/** Makes the new key a member of the replaced key's organization, so that the new key can register the agent. */
async function admitNewKey(
  tx: WriteTx,
  { record }: StoredAgent,
  principal: string,
  now: number,
): Promise<void> {
  const { organization, principal: admittedBy } = record;
  if (organization === "" || !(await isMember(tx, organization, admittedBy))) return;
  if (await isMember(tx, organization, principal)) return;
  await addMember(tx, organization, { principal, admittedBy, createTime: now });
}
