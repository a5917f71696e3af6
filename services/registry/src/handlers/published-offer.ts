import { create } from "@bufbuild/protobuf";
import {
  OfferStatus,
  type PublishedOffer,
  PublishedOfferSchema,
} from "@depute/contracts/depute/registry/v1/offer_service_pb";
import { toTimestamp } from "@depute/core";
import { digestBytes } from "../rules/agent.ts";
import { isOpen } from "../rules/offer.ts";
import type { StoredOffer } from "../store/offers.ts";

/** Converts a stored version of an offer to its contract message. */
export function toPublishedOffer(stored: StoredOffer, now: number): PublishedOffer {
  const { offer, isCurrent: current, digest, withdrawTime, withdrawMessage } = stored;
  const withdrawn = withdrawTime !== 0;
  const message = create(PublishedOfferSchema, {
    offer,
    status: withdrawn ? OfferStatus.WITHDRAWN : OfferStatus.PUBLISHED,
    current,
    open: isOpen({ ...stored, withdrawn }, now),
    digest: digestBytes(digest),
    organization: offer.sellerAgent?.organizationId ?? "",
    publishTime: toTimestamp(stored.publishTime),
    withdrawMessage,
  });
  if (withdrawn) message.withdrawTime = toTimestamp(withdrawTime);
  return message;
}
