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
import type { ReadTx } from "@depute/store";
import { findOwn, identify, type RegistryContext } from "../context.ts";
import { repeatable } from "../idempotency.ts";
import { checkEndpoints } from "../rules/endpoints.ts";
import { nextVersion, offerDigest, readOffer } from "../rules/offer.ts";
import type { SchemaToCheck } from "../rules/schema-checks.ts";
import { addOffer, findOffer, latestOffer, offerVersions, type StoredOffer } from "../store/offers.ts";
import { presentOffer } from "./present-offer.ts";

const SCHEMAS = { request: PublishOfferRequestSchema, answer: PublishOfferResponseSchema };

/** Versions that an offer may have. */
const MAX_VERSIONS = 10_000;

/** OfferService.PublishOffer. The verifier is asked between two transactions, like for capabilities. */
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
  const call = repeatable(SCHEMAS, identity.principal, request.requestId, request);
  const look = async (tx: ReadTx) => {
    const answered = await call.before(tx);
    if (answered !== undefined) return { answered };
    const { record } = await findOwn(tx, identity, sellerId, "offer.seller_agent.agent_id");
    const latest = await latestOffer(tx, offer.offerId);
    const same = await publishedBefore(tx, offer, digest, latest);
    return { record, latest, same };
  };
  const before = await registry.store.read(look);
  if (before.answered !== undefined) return before.answered;
  if (before.same === undefined) {
    readOffer(offer, before.record.organization, registry.clock.now());
    if (before.latest?.digest !== digest) {
      await registry.schemas.check(schemasOf(offer), ownOptions(context, registry.clock));
    }
  }

  return registry.store.write(async (tx) => {
    const { answered, record, latest, same } = await look(tx);
    if (answered !== undefined) return answered;
    const now = registry.clock.now();
    let published = same;
    if (published === undefined) {
      const versions = await offerVersions(tx, offer.offerId);
      checkRoom(versions.size);
      const named = clone(OfferSchema, offer);
      named.offerVersion ??= nextVersion(versions.size, (version) => versions.has(version));
      const sequence = (latest?.sequence ?? 0) + 1;
      await addOffer(tx, readOffer(named, record.organization, now), { sequence, digest, now });
      published = await findOffer(tx, offer.offerId, named.offerVersion, "all");
    }
    if (published === undefined) throw new Error("an offer was written and is not there");
    const answer = create(PublishOfferResponseSchema, { offer: presentOffer(published, now) });
    await call.keep(tx, answer, now);
    return answer;
  });
}

/**
 * The version that has this content already: the one of its name, or the current one for an offer that names none.
 *
 * @throws DeputeError OFFER_VERSION_EXISTS
 */
async function publishedBefore(
  tx: ReadTx,
  offer: Offer,
  digest: string,
  latest: StoredOffer | undefined,
): Promise<StoredOffer | undefined> {
  if (latest !== undefined && latest.sellerId !== offer.sellerAgent?.agentId) {
    throw versionExists(offer, "belongs to another seller");
  }
  const { offerId, offerVersion = "" } = offer;
  const named = await findOffer(tx, offerId, offerVersion, "all");
  if (named === undefined) return undefined;
  if (named.digest === digest && named.withdrawTime === 0) return named;
  if (offerVersion === "") return undefined;
  const description = named.digest === digest ? "was withdrawn" : "was published with another content";
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
  throw new DeputeError(ErrorReason.LIMIT_EXCEEDED, "the offer has as many versions as it may have", {
    metadata: { limit: "offer_versions", max: String(MAX_VERSIONS) },
  });
}

function schemasOf({ inputSchema, outputSchema }: Offer): SchemaToCheck[] {
  return [
    { field: "offer.input_schema", schema: jsonOf(inputSchema), examples: [] },
    { field: "offer.output_schema", schema: jsonOf(outputSchema), examples: [] },
  ];
}

function jsonOf(schema: Offer["inputSchema"]): JsonValue {
  return schema === undefined ? null : toJson(ValueSchema, schema);
}

function digestOf(offer: Offer): string {
  try {
    return offerDigest(offer, sha256Hex);
  } catch {
    throw invalid("offer", "holds a number or a text without a JSON form");
  }
}
