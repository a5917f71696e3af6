import { create } from "@bufbuild/protobuf";
import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import { AgentStatus } from "@depute/contracts/depute/registry/v1/agent_pb";
import {
  type GetOfferRequest,
  GetOfferResponseSchema,
  type ListOffersRequest,
  ListOffersResponseSchema,
  type ListOfferVersionsRequest,
  ListOfferVersionsResponseSchema,
  type OfferService,
  PublishedOfferSchema,
  type WithdrawOfferRequest,
  WithdrawOfferResponseSchema,
} from "@depute/contracts/depute/registry/v1/offer_service_pb";
import { DeputeError, ErrorReason, encodePageToken, fromTimestamp, pageSize } from "@depute/core";
import { bytesOf, cutPage, hasRole } from "@depute/service";
import { agentNotFound, findAgentToEnd, identify, type RegistryContext, viewerFor } from "../context.ts";
import { readPosition } from "../page-position.ts";
import { capabilityWord } from "../rules/offer.ts";
import {
  findOffer,
  latestOffer,
  type OfferFilter,
  listOffers as queryOffers,
  listOfferVersions as queryVersions,
  type StoredOffer,
  withdrawOffers,
} from "../store/offers.ts";
import { publishOffer } from "./publish-offer.ts";
import { toPublishedOffer } from "./published-offer.ts";

export function offerService(registry: RegistryContext): ServiceImpl<typeof OfferService> {
  return {
    publishOffer: (request, context) => publishOffer(registry, request, context),
    getOffer: (request, context) => getOffer(registry, request, context),
    listOfferVersions: (request, context) => listOfferVersions(registry, request, context),
    listOffers: (request, context) => listOffers(registry, request, context),
    withdrawOffer: (request, context) => withdrawOffer(registry, request, context),
  };
}

async function getOffer(registry: RegistryContext, request: GetOfferRequest, context: HandlerContext) {
  const viewer = viewerFor(await identify(registry, context), request.viewer);
  const { offerId, offerVersion } = request;
  const offer = await registry.store.read((tx) => findOffer(tx, offerId, offerVersion, viewer));
  if (offer === undefined) throw offerNotFound(offerId, offerVersion);
  return create(GetOfferResponseSchema, { offer: toPublishedOffer(offer, registry.clock.now()) });
}

async function listOfferVersions(
  registry: RegistryContext,
  { offerId, pageToken, pageSize: requestedSize }: ListOfferVersionsRequest,
  context: HandlerContext,
) {
  const viewer = viewerFor(await identify(registry, context), "");
  const filters = { list: "offer-versions", offerId };
  const [before] = readPosition(pageToken, filters, ["number"]) ?? [Number.MAX_SAFE_INTEGER];
  const size = pageSize(requestedSize);
  const offerRows = await registry.store.read((tx) =>
    queryVersions(tx, offerId, { before, limit: size + 1, viewer }),
  );
  // After the position of a valid page token, at least one version follows. So an empty page means that the viewer sees
  // no such offer.
  if (offerRows.length === 0) throw offerNotFound(offerId, "");
  const { offers, last: lastOffer, more } = toOfferPage(offerRows, size, registry.clock.now());
  const last = lastOffer?.sequence;
  return create(ListOfferVersionsResponseSchema, {
    offers,
    nextPageToken: last !== undefined && more ? encodePageToken([last], filters) : "",
  });
}

async function listOffers(registry: RegistryContext, request: ListOffersRequest, context: HandlerContext) {
  const viewer = viewerFor(await identify(registry, context), "");
  const filter: OfferFilter = {
    sellerId: request.sellerAgentId,
    organization: request.organizationId,
    word: capabilityWord(request.capability),
    buyerId: request.buyerAgentId,
    validAt: request.validAt === undefined ? undefined : fromTimestamp(request.validAt),
  };
  const filters = { list: "offers", ...filter };
  const [after] = readPosition(request.pageToken, filters, ["string"]) ?? [""];
  const size = pageSize(request.pageSize);
  const offerRows = await registry.store.read((tx) =>
    queryOffers(tx, filter, { after, limit: size + 1, viewer }),
  );
  const { offers, last: lastOffer, more } = toOfferPage(offerRows.offers, size, registry.clock.now());
  // If the search reached its limit of rows before the page was full, the next page begins after the last row that the
  // search read.
  const last = more ? lastOffer?.offer.offerId : offerRows.stoppedAt;
  return create(ListOffersResponseSchema, {
    offers,
    nextPageToken: last === undefined ? "" : encodePageToken([last], filters),
  });
}

/** Converts a page to contract messages. Also returns the stored form of the page's last offer. */
function toOfferPage(offerRows: readonly StoredOffer[], size: number, now: number) {
  const publishedOffers = offerRows.map((stored) => ({ stored, offer: toPublishedOffer(stored, now) }));
  const { items, more } = cutPage(publishedOffers, size, ({ offer }) => bytesOf(PublishedOfferSchema, offer));
  return { offers: items.map(({ offer }) => offer), last: items.at(-1)?.stored, more };
}

async function withdrawOffer(
  registry: RegistryContext,
  { offerId, offerVersion, message }: WithdrawOfferRequest,
  context: HandlerContext,
) {
  const identity = await identify(registry, context);
  return registry.store.write(async (tx) => {
    const viewer = hasRole(identity, "operator") ? "all" : viewerFor(identity, "");
    const visibleOffer = await findOffer(tx, offerId, offerVersion, viewer);
    const latest = await latestOffer(tx, offerId);
    if (visibleOffer === undefined || latest === undefined) throw offerNotFound(offerId, offerVersion);
    const seller = await findAgentToEnd(tx, identity, latest.sellerId, "offer_id");
    if (seller.status === AgentStatus.REMOVED) throw agentNotFound(latest.sellerId);
    const withdrawal = { now: registry.clock.now(), message };
    const withdrawn = await withdrawOffers(tx, offerId, offerVersion, withdrawal);
    return create(WithdrawOfferResponseSchema, { withdrawnCount: withdrawn });
  });
}

function offerNotFound(offer: string, version: string): DeputeError {
  const metadata = { offer, ...(version !== "" && { version }) };
  return new DeputeError(
    ErrorReason.OFFER_NOT_FOUND,
    `the offer ${offer} does not exist, or is not visible to the caller; check the id`,
    { metadata },
  );
}
