import type { HandlerContext } from "@connectrpc/connect";
import {
  type PurgeOrganizationRequest,
  type PurgeOrganizationResponse,
  PurgeOrganizationResponseSchema,
} from "@depute/contracts/depute/verifier/v1/contract_service_pb";
import { type PurgeTally, purgeOrganization as runPurge } from "@depute/service";
import type { WriteTx } from "@depute/store";
import { REVIEW_TOPIC } from "../reviews.ts";
import { ORGANIZATION_DATA } from "../rules/organization-data.ts";
import { stateOf, withdraw } from "../rules/review.ts";
import {
  countRemaining,
  deleteArtifactsOf,
  deleteAttestationsOf,
  deleteContractsOf,
  deleteResultsOf,
  deleteReview,
  reviewsOf,
} from "../store/purge-rows.ts";
import { requests } from "../store/requests.ts";
import { getReview, updateReview } from "../store/reviews.ts";
import type { Verifier } from "../verifier.ts";

const REASON = "the organization's data is deleted";

/** Implements ContractService.PurgeOrganization. */
export async function purgeOrganization(
  verifier: Verifier,
  request: PurgeOrganizationRequest,
  context: HandlerContext,
): Promise<PurgeOrganizationResponse> {
  const { store, clock, authority } = verifier;
  const identity = await authority.identify(context);
  return runPurge(
    {
      ...{ store, clock, requests, answer: PurgeOrganizationResponseSchema, rules: ORGANIZATION_DATA },
      purge: (tx, organization, tally) => purge(verifier, tx, organization, tally, identity.principal),
      count: countRemaining,
    },
    identity,
    request,
  );
}

async function purge(
  verifier: Verifier,
  tx: WriteTx,
  organization: string,
  tally: PurgeTally,
  operator: string,
): Promise<void> {
  const { contracts, bus, clock } = verifier;
  for (const id of await reviewsOf(tx, organization, tally.left)) {
    const review = await getReview(tx, id);
    if (review === undefined) continue;
    const now = clock.now();
    if (stateOf(review, now) === "pending") {
      await updateReview(tx, withdraw(review, operator, REASON, now));
      tx.afterCommit(() => bus.publish(REVIEW_TOPIC, id));
      tally.postpone();
    } else {
      await deleteReview(tx, id);
      tally.count("reviews", 1);
    }
  }
  await deleteResultsOf(tx, organization, tally);
  await deleteArtifactsOf(tx, organization, tally);
  await deleteAttestationsOf(tx, organization, tally);
  const deleted = await deleteContractsOf(tx, organization, tally);
  tx.afterCommit(() => {
    for (const id of deleted) contracts.forget(id);
  });
}
