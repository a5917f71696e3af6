import type { HandlerContext } from "@connectrpc/connect";
import { AgentStatus } from "@depute/contracts/depute/registry/v1/agent_pb";
import {
  type PurgeOrganizationRequest,
  type PurgeOrganizationResponse,
  PurgeOrganizationResponseSchema,
} from "@depute/contracts/depute/registry/v1/organization_service_pb";
import { type PurgeTally, purgeOrganization as runPurge } from "@depute/service";
import { markPurged, type WriteTx } from "@depute/store";
import { identify, type RegistryContext } from "../context.ts";
import { requests } from "../idempotency.ts";
import type { StoredAgent } from "../rules/agent.ts";
import { ORGANIZATION_DATA } from "../rules/organization-data.ts";
import { findAgent, listInstances } from "../store/agents.ts";
import { wasProven } from "../store/proofs.ts";
import {
  agentsOf,
  deleteAgent,
  deleteGrantsOf,
  deleteOffersOf,
  deleteRecordsOfAgent,
  deleteTrustGivenBy,
  membersOf,
  proofsOf,
} from "../store/purge-rows.ts";
import { removeAgent } from "./remove-agent.ts";

/** Implements OrganizationService.PurgeOrganization. */
export async function purgeOrganization(
  registry: RegistryContext,
  request: PurgeOrganizationRequest,
  context: HandlerContext,
): Promise<PurgeOrganizationResponse> {
  const { store, clock } = registry;
  return runPurge(
    {
      ...{ store, clock, requests, answer: PurgeOrganizationResponseSchema, rules: ORGANIZATION_DATA },
      purge: (tx, organization, tally) => purge(registry, tx, organization, tally),
      // The registry keeps no record of an organization that could be counted.
      count: async () => new Map(),
    },
    await identify(registry, context),
    request,
  );
}

async function purge(
  registry: RegistryContext,
  tx: WriteTx,
  organization: string,
  tally: PurgeTally,
): Promise<void> {
  if (await wasProven(tx, organization)) await markPurged(tx, "organization", organization);
  await deleteOffersOf(tx, { column: "organization", value: organization }, tally);
  for (const id of await agentsOf(tx, organization, tally.left)) {
    const agent = tally.left > 0 ? await findAgent(tx, id) : undefined;
    if (agent === undefined) break;
    const instances = await listInstances(tx, id, tally.left);
    for (const each of [...instances, agent]) {
      if (tally.left > 0) await purgeAgent(registry, tx, each, tally);
    }
  }
  await deleteTrustGivenBy(tx, `o${organization}`, tally);
  for (const find of [membersOf, proofsOf]) {
    for (const principal of await find(tx, organization, tally)) {
      tally.use(await requests.forget(tx, principal, Math.max(0, tally.left)));
    }
  }
  await deleteGrantsOf(tx, organization, tally);
}

/** Removes an agent that is not removed. Otherwise deletes its records, and then the agent itself. */
async function purgeAgent(
  registry: RegistryContext,
  tx: WriteTx,
  agent: StoredAgent,
  tally: PurgeTally,
): Promise<void> {
  const { id, principal } = agent.record;
  if (agent.status !== AgentStatus.REMOVED) {
    await removeAgent(registry, tx, agent, agent.statusMessage, registry.clock.now());
    tally.postpone();
    return;
  }
  if (principal !== "") tally.use(await requests.forget(tx, principal, tally.left));
  await deleteRecordsOfAgent(tx, agent.record, tally);
  if (tally.left <= 0) return;
  await deleteAgent(tx, registry, id);
  tally.count("agents", 1);
}
