import { create, fromJson, type MessageInitShape } from "@bufbuild/protobuf";
import { ValueSchema } from "@bufbuild/protobuf/wkt";
import { ArtifactType } from "@depute/contracts/agenta/delegation/v0/agenta_common_pb";
import {
  type Offer,
  OfferSchema,
  PricingModel,
  VerificationMode,
} from "@depute/contracts/agenta/delegation/v0/offer_pb";

/** Members of an offer in the form that `create` accepts. */
export type OfferParts = Exclude<MessageInitShape<typeof OfferSchema>, Offer>;

/** Creates a valid offer. Its seller is the agent `seller` of `acme`. */
export function offerOf(parts: OfferParts = {}): Offer {
  const offer: OfferParts = {
    protocolVersion: "agenta.delegation.v0",
    messageType: "offer",
    offerId: "offer-001",
    sellerAgent: { agentId: "seller", organizationId: "acme" },
    title: "Sentiment",
    description: "Tells the mood of a text.",
    capabilities: { values: ["NLP.sentiment"] },
    inputSchema: fromJson(ValueSchema, { type: "object" }),
    outputSchema: fromJson(ValueSchema, { type: "object" }),
    pricing: { pricingModel: PricingModel.FIXED, currency: "USD", amount: 100n },
    serviceLevels: { targetCompletionSeconds: 60n, maxCompletionSeconds: 600n },
    verificationPolicy: {
      mode: VerificationMode.SELLER_ATTESTED,
      requiredArtifacts: [ArtifactType.RESULT_PAYLOAD],
      passCriteria: ["It is right."],
    },
    validFrom: "2025-12-01T00:00:00Z",
    ...parts,
  };
  return create(OfferSchema, offer);
}
