import { create } from "@bufbuild/protobuf";
import {
  OfferStatus,
  type PublishedOffer,
  PublishedOfferSchema,
} from "@depute/contracts/depute/registry/v1/offer_service_pb";
import { toTimestamp } from "@depute/core";
import { isOpen } from "../rules/offer.ts";
import type { StoredOffer } from "../store/offers.ts";

/** A version as it is answered. */
export function presentOffer(stored: StoredOffer, now: number): PublishedOffer {
  const { offer, isCurrent: current, digest, withdrawTime, withdrawMessage } = stored;
  const withdrawn = withdrawTime !== 0;
  const message = create(PublishedOfferSchema, {
    offer,
    status: withdrawn ? OfferStatus.WITHDRAWN : OfferStatus.PUBLISHED,
    current,
    open: isOpen({ ...stored, withdrawn }, now),
    digest,
    publishTime: toTimestamp(stored.publishTime),
    withdrawMessage,
  });
  if (withdrawn) message.withdrawTime = toTimestamp(withdrawTime);
  return message;
}
