import type { HandlerContext } from "@connectrpc/connect";
import { AgentStatus } from "@depute/contracts/depute/registry/v1/agent_pb";
import {
  type PurgeOrganizationRequest,
  type PurgeOrganizationResponse,
  PurgeOrganizationResponseSchema,
} from "@depute/contracts/depute/registry/v1/organization_service_pb";
import { ProposalState } from "@depute/contracts/depute/registry/v1/proposal_service_pb";
import { MAX_COUNTED_REMAINING, type PurgeTally, purgeOrganization as runPurge } from "@depute/service";
import { markPurged, type WriteTx } from "@depute/store";
import { identify, type RegistryContext } from "../context.ts";
import { requests } from "../idempotency.ts";
import type { StoredAgent } from "../rules/agent.ts";
import { ORGANIZATION_DATA } from "../rules/organization-data.ts";
import { findAgent, listInstances } from "../store/agents.ts";
import { wasProven } from "../store/proofs.ts";
import { deleteProposal, endProposal, proposalsOf } from "../store/proposals.ts";
import {
  agentsOf,
  deleteAgent,
  deleteGrantsOf,
  deleteMembersOf,
  deleteOffersOf,
  deleteProofsOf,
  deleteRecordsOfAgent,
  deleteTrustGivenBy,
  isKeyInUse,
} from "../store/purge-rows.ts";
import { removeAgent } from "./remove-agent.ts";

/** Maximum number of a key's stored responses that one call deletes. The remaining responses expire within a day. */
const MAX_FORGOTTEN = 10_000;

/** Implements OrganizationService.PurgeOrganization. */
export async function purgeOrganization(
  registry: RegistryContext,
  request: PurgeOrganizationRequest,
  context: HandlerContext,
): Promise<PurgeOrganizationResponse> {
  const { store, clock, trustOperators: operators } = registry;
  return runPurge(
    {
      ...{ store, clock, requests, answer: PurgeOrganizationResponseSchema, rules: ORGANIZATION_DATA },
      operators,
      purge: (tx, organization, tally) => purge(registry, tx, organization, tally),
      count: async (tx, organization) =>
        new Map([["proposals", (await proposalsOf(tx, organization, MAX_COUNTED_REMAINING)).length]]),
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
  await purgeProposals(registry, tx, organization, tally);
  await deleteTrustGivenBy(tx, `o${organization}`, tally);
  for (const remove of [deleteMembersOf, deleteProofsOf]) {
    for (const principal of await remove(tx, organization, tally)) await forgetKey(tx, principal, tally);
  }
  await deleteGrantsOf(tx, { column: "organization", value: organization }, tally);
}

/**
 * Withdraws pending proposals. Deletes ended proposals, except those whose call to the verifier service is not
 * delivered yet.
 */
async function purgeProposals(
  { proposals, clock }: RegistryContext,
  tx: WriteTx,
  organization: string,
  tally: PurgeTally,
): Promise<void> {
  const { WITHDRAWN: state } = ProposalState;
  for (const { id, endTime, owed } of await proposalsOf(tx, organization, tally.left)) {
    if (endTime === 0) {
      await endProposal(tx, id, { state, reason: "", decidedBy: "", endTime: clock.now(), owed: "withdraw" });
      tx.afterCommit(() => proposals.wake());
      tally.postpone();
    } else if (owed === "") {
      await deleteProposal(tx, id);
      tally.count("proposals", 1);
    }
  }
}

/**
 * For a removed agent, deletes the agent's records and then the agent. Any other agent is removed first, and a later
 * step deletes it.
 */
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
  await deleteRecordsOfAgent(tx, agent.record, tally);
  if (tally.left <= 0) return;
  await deleteAgent(tx, registry, id);
  tally.count("agents", 1);
  await forgetKey(tx, principal, tally);
}

/** Deletes the grants and the stored responses of a key, unless the key still acts for an agent or an organization. */
async function forgetKey(tx: WriteTx, principal: string, tally: PurgeTally): Promise<void> {
  if (principal === "" || (await isKeyInUse(tx, principal))) return;
  await deleteGrantsOf(tx, { column: "principal", value: principal }, tally);
  tally.use(await requests.forget(tx, principal, MAX_FORGOTTEN));
}
