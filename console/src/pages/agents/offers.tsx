import { useQuery } from "@connectrpc/connect-query";
import {
  OfferService,
  OfferStatus,
  type PublishedOffer,
} from "@depute/contracts/depute/registry/v1/offer_service_pb";
import { Card, Fact, Facts, Tag, Time } from "../../parts/facts.tsx";
import { Empty, Loading, Refused } from "../../parts/states.tsx";
import { Id, Text } from "../../parts/text.tsx";
import { minorUnits } from "../../rules/money.ts";

/** Lists the offers of a seller. */
export function Offers({ agentId }: { readonly agentId: string }) {
  const query = useQuery(OfferService.method.listOffers, { sellerAgentId: agentId, pageSize: 200 });
  if (query.isPending) return <Loading what="offers" />;
  if (query.isError) return <Refused error={query.error} />;
  if (query.data.offers.length === 0) return <Empty title="No offers">This agent sells nothing.</Empty>;
  return (
    <div className="stack">
      {query.data.offers.map((published) => (
        <Offer key={`${published.offer?.offerId} ${published.offer?.offerVersion}`} published={published} />
      ))}
    </div>
  );
}

function Offer({ published }: { readonly published: PublishedOffer }) {
  const { offer, status, open, publishTime } = published;
  if (offer === undefined) return null;
  const isWithdrawn = status === OfferStatus.WITHDRAWN;
  const word = isWithdrawn ? "Withdrawn" : open ? "Open" : "Closed";
  return (
    <Card
      title={offer.title}
      aside={<Tag tone={isWithdrawn ? "neutral" : open ? "good" : "waiting"}>{word}</Tag>}
    >
      <Facts>
        <Fact name="Description">
          <Text value={offer.description} />
        </Fact>
        <Fact name="Price">
          {offer.pricing !== undefined && minorUnits(offer.pricing.amount, offer.pricing.currency)}
        </Fact>
        <Fact name="Offer">
          <Id value={offer.offerId} max={128} />
        </Fact>
        <Fact name="Version">{offer.offerVersion && <Text value={offer.offerVersion} />}</Fact>
        <Fact name="Published">
          <Time value={publishTime} />
        </Fact>
      </Facts>
    </Card>
  );
}
