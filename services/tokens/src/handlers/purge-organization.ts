import type { HandlerContext } from "@connectrpc/connect";
import {
  type PurgeOrganizationRequest,
  type PurgeOrganizationResponse,
  PurgeOrganizationResponseSchema,
} from "@depute/contracts/depute/tokens/v1/delegation_service_pb";
import { type PurgeTally, purgeOrganization as runPurge } from "@depute/service";
import type { WriteTx } from "@depute/store";
import type { TokensContext } from "../context.ts";
import { ORGANIZATION_DATA } from "../rules/organization-data.ts";
import { requests } from "../store/mint-requests.ts";
import {
  countRemaining,
  deleteDelegationsOf,
  deleteKeysOf,
  deleteReservationsOf,
} from "../store/purge-rows.ts";

/** Implements DelegationService.PurgeOrganization. */
export async function purgeOrganization(
  { store, clock, audit, identify }: TokensContext,
  request: PurgeOrganizationRequest,
  context: HandlerContext,
): Promise<PurgeOrganizationResponse> {
  const identity = await identify(context);
  const purge = async (tx: WriteTx, organization: string, tally: PurgeTally) => {
    const now = clock.now();
    await deleteKeysOf(tx, organization, tally);
    await deleteReservationsOf(tx, organization, now, tally);
    await deleteDelegationsOf(tx, organization, now, tally);
    await audit.write(tx, {
      ...{ kind: "call", caller: identity.principal, principal: identity.principal, decision: "allowed" },
      ...{ reason: `${tally.deletedCount}`, resource: `organizations/${organization}`, blocks: [] },
    });
  };
  return runPurge(
    {
      ...{ store, clock, requests, answer: PurgeOrganizationResponseSchema, rules: ORGANIZATION_DATA },
      ...{ purge, count: countRemaining },
    },
    identity,
    request,
  );
}
