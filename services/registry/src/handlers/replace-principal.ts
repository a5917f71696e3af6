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
import { agentNotFound, announce, identify, type RegistryContext } from "../context.ts";
import { verifyEd25519 } from "../ed25519.ts";
import { present, type StoredAgent } from "../rules/agent.ts";
import { inherit, MAX_INSTANCES } from "../rules/instances.ts";
import { recordDigest } from "../rules/record-digest.ts";
import { baseOf } from "../rules/registration.ts";
import { withPrincipal } from "../rules/replacement.ts";
import { checkReplacement } from "../rules/statement.ts";
import { findAgent, listInstances, putRecord } from "../store/agents.ts";
import { addMember } from "../store/members.ts";
import { isMember } from "../store/sight.ts";
import { addVersion } from "../store/versions.ts";
import { checkBounds } from "./check-bounds.ts";
import { moveProofs } from "./organization-proofs.ts";
import { nextRevision } from "./register-agent.ts";

/** AgentService.ReplacePrincipal. */
export async function replacePrincipal(
  registry: RegistryContext,
  request: ReplacePrincipalRequest,
  context: HandlerContext,
): Promise<ReplacePrincipalResponse> {
  const identity = await identify(registry, context);
  const { id, replaced, principal } = request;
  if (principal === replaced) throw invalid("principal", "is the one that it replaces");
  if (baseOf(id) !== undefined) throw invalid("id", "is an instance: the key of its base is replaced");
  const agent = await registry.store.write(async (tx) => {
    const view = await registry.guard.view(tx);
    const known = await findAgent(tx, id);
    const isDone = known?.record.principal === principal;
    checkBoth(registry, request, isDone ? undefined : known?.updateTime);
    if (known === undefined || (!isDone && known.record.principal !== replaced)) throw agentNotFound(id);
    if (isDone) return present(known, view);
    await checkBounds(registry, tx, identity, withPrincipal(known.record, principal), known.record);
    const changed = await replace(registry, tx, known, principal);
    await moveProofs(tx, replaced, principal, registry.clock.now());
    for (const instance of await listInstances(tx, id, MAX_INSTANCES)) {
      if (instance.own.principal === replaced) await replace(registry, tx, instance, principal, changed);
    }
    return present(changed, view);
  });
  return create(ReplacePrincipalResponseSchema, { agent });
}

/** Each key says that it goes, or comes: nobody is given an agent that he did not ask for. */
function checkBoth(
  registry: RegistryContext,
  request: ReplacePrincipalRequest,
  recordTime: number | undefined,
): void {
  const { id: agentId, replaced: from, principal: to } = request;
  const now = registry.clock.now();
  const expected = { agentId, from, to, audience: registry.publicUrl, now, recordTime };
  checkReplacement(request.replacedStatement, "from", expected, verifyEd25519);
  checkReplacement(request.principalStatement, "to", expected, verifyEd25519);
}

async function replace(
  registry: RegistryContext,
  tx: WriteTx,
  known: StoredAgent,
  principal: string,
  base?: StoredAgent,
): Promise<StoredAgent> {
  const now = registry.clock.now();
  const own = withPrincipal(known.own, principal);
  const record = base === undefined ? own : inherit(own, base.record);
  const revision = await nextRevision(tx, own.id);
  const digest = recordDigest(own, sha256Hex);
  const changed: StoredAgent = { ...known, own, record, revision, digest, updateTime: now };
  await putRecord(tx, registry, changed);
  await addVersion(tx, { revision, digest, record: own, createTime: now });
  await admit(tx, known, principal, now);
  await registry.authorities.replace(tx, known.own, known.record.principal, principal);
  await announce(registry, tx, AgentChangeKind.UPDATED, record, known.record);
  return changed;
}

/** The new key belongs where the old one did: it registers the agent next time. */
async function admit(tx: WriteTx, { record }: StoredAgent, principal: string, now: number): Promise<void> {
  const { organization, principal: admittedBy } = record;
  if (organization === "" || !(await isMember(tx, organization, admittedBy))) return;
  if (await isMember(tx, organization, principal)) return;
  await addMember(tx, organization, { principal, admittedBy, createTime: now });
}
