import { clone, create, type JsonValue, toJson } from "@bufbuild/protobuf";
import { ValueSchema } from "@bufbuild/protobuf/wkt";
import type { HandlerContext } from "@connectrpc/connect";
import { type Offer, OfferSchema } from "@depute/contracts/agenta/delegation/v0/offer_pb";
import {
  type PublishOfferRequest,
  PublishOfferRequestSchema,
  type PublishOfferResponse,
  PublishOfferResponseSchema,
} from "@depute/contracts/depute/registry/v1/offer_service_pb";
import { DeputeError, ErrorReason, invalid } from "@depute/core";
import { sha256Hex } from "@depute/core/sha256";
import { ownOptions } from "@depute/service";
import { isPurged, type ReadTx } from "@depute/store";
import { findCallersAgent, identify, type RegistryContext } from "../context.ts";
import { idempotentCall } from "../idempotency.ts";
import { checkEndpoints } from "../rules/endpoints.ts";
import { nextVersion, offerDigest, readOffer } from "../rules/offer.ts";
import type { SchemaToCheck } from "../rules/schema-checks.ts";
import { addOffer, findOffer, latestOffer, offerVersions, type StoredOffer } from "../store/offers.ts";
import { toPublishedOffer } from "./published-offer.ts";

const SCHEMAS = { request: PublishOfferRequestSchema, answer: PublishOfferResponseSchema };

const MAX_VERSIONS = 10_000;

/**
 * Implements OfferService.PublishOffer. Calls the verifier between two transactions, because no transaction may wait
 * for another service.
 */
export async function publishOffer(
  registry: RegistryContext,
  request: PublishOfferRequest,
  context: HandlerContext,
): Promise<PublishOfferResponse> {
  const identity = await identify(registry, context);
  const { offer } = request;
  if (offer === undefined) throw invalid("offer", "is required");
  const endpoint = { field: "offer.seller_agent.endpoint", url: offer.sellerAgent?.endpoint };
  checkEndpoints([endpoint], registry.endpointOrigins);
  const sellerId = offer.sellerAgent?.agentId ?? "";
  const digest = digestOf(offer);
  const call = idempotentCall(SCHEMAS, identity.principal, request.requestId, request);
  const readState = async (tx: ReadTx) => {
    const earlierAnswer = await call.findAnswer(tx);
    if (earlierAnswer !== undefined) return { earlierAnswer };
    const { record } = await findCallersAgent(tx, identity, sellerId, "offer.seller_agent.agent_id");
    const latest = await latestOffer(tx, offer.offerId);
    if (latest === undefined && (await isPurged(tx, "offer", offer.offerId))) {
      throw versionExists(offer, "belonged to a purged seller; use another id");
    }
    const same = await findPublishedVersion(tx, offer, digest, latest);
    return { record, latest, same };
  };
  const before = await registry.store.read(readState);
  if (before.earlierAnswer !== undefined) return before.earlierAnswer;
  if (before.same === undefined) {
    readOffer(offer, before.record.organization, registry.clock.now());
    if (before.latest?.digest !== digest) {
      await registry.schemas.check(schemasOf(offer), ownOptions(context, registry.clock));
    }
  }

  return registry.store.write(async (tx) => {
    const { earlierAnswer, record, latest, same } = await readState(tx);
    if (earlierAnswer !== undefined) return earlierAnswer;
    const now = registry.clock.now();
    let published = same;
    if (published === undefined) {
      const versions = await offerVersions(tx, offer.offerId);
      checkRoom(versions.size);
      const namedOffer = clone(OfferSchema, offer);
      namedOffer.offerVersion ??= nextVersion(versions.size, (version) => versions.has(version));
      const sequence = (latest?.sequence ?? 0) + 1;
      await addOffer(tx, readOffer(namedOffer, record.organization, now), { sequence, digest, now });
      published = await findOffer(tx, offer.offerId, namedOffer.offerVersion, "all");
    }
    if (published === undefined) throw new Error("the offer was stored, but cannot be read");
    const answer = create(PublishOfferResponseSchema, { offer: toPublishedOffer(published, now) });
    await call.storeAnswer(tx, answer, now);
    return answer;
  });
}

/**
 * Finds a published version that has this content and is not withdrawn: the version that the request names or, without
 * a name, the current version. Returns undefined if there is none.
 *
 * @throws DeputeError OFFER_VERSION_EXISTS if another seller has the offer, or if the named version was withdrawn or
 * has different content
 */
async function findPublishedVersion(
  tx: ReadTx,
  offer: Offer,
  digest: string,
  latest: StoredOffer | undefined,
): Promise<StoredOffer | undefined> {
  if (latest !== undefined && latest.sellerId !== offer.sellerAgent?.agentId) {
    throw versionExists(offer, "belongs to another seller");
  }
  const { offerId, offerVersion = "" } = offer;
  const namedOffer = await findOffer(tx, offerId, offerVersion, "all");
  if (namedOffer === undefined) return undefined;
  if (namedOffer.digest === digest && namedOffer.withdrawTime === 0) return namedOffer;
  if (offerVersion === "") return undefined;
  const description = namedOffer.digest === digest ? "was withdrawn" : "was published with different content";
  throw versionExists(offer, description);
}

function versionExists({ offerId, offerVersion }: Offer, description: string): DeputeError {
  const metadata = { offer: offerId, ...(offerVersion !== undefined && { version: offerVersion }) };
  const field = offerVersion === undefined ? "offer.offer_id" : "offer.offer_version";
  return new DeputeError(ErrorReason.OFFER_VERSION_EXISTS, `${offerId} ${description}`, {
    metadata,
    violations: [{ field, description }],
  });
}

function checkRoom(versions: number): void {
  if (versions < MAX_VERSIONS) return;
  throw new DeputeError(
    ErrorReason.LIMIT_EXCEEDED,
    "the offer has reached the limit of versions; publish a new offer",
    {
      metadata: { limit: "offer_versions", max: String(MAX_VERSIONS) },
    },
  );
}

function schemasOf({ inputSchema, outputSchema }: Offer): SchemaToCheck[] {
  return [
    { field: "offer.input_schema", schema: schemaJson(inputSchema), examples: [] },
    { field: "offer.output_schema", schema: schemaJson(outputSchema), examples: [] },
  ];
}

function schemaJson(schema: Offer["inputSchema"]): JsonValue {
  return schema === undefined ? null : toJson(ValueSchema, schema);
}

function digestOf(offer: Offer): string {
  try {
    return offerDigest(offer, sha256Hex);
  } catch {
    throw invalid("offer", "contains a number or a string without a JSON form");
  }
}
