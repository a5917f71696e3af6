import { useInfiniteQuery, useQuery } from "@connectrpc/connect-query";
import { DelegationStatus } from "@depute/contracts/delegateos/v0/delegation_pb";
import {
  type DelegationRecord,
  DelegationService,
} from "@depute/contracts/depute/tokens/v1/delegation_service_pb";
import { useState } from "react";
import { Card, Fact, Facts, Time } from "../../parts/facts.tsx";
import { NotShown, Opening } from "../../parts/states.tsx";
import { Id } from "../../parts/text.tsx";
import { unlessRefused } from "../../rpc/refusal.ts";
import { useRevocationWake } from "../../rpc/revocation-wake.ts";
import { readPause } from "../../rpc/wake.ts";
import { consequencesOf } from "../../rules/consequences.ts";
import { hashOf } from "../../rules/route.ts";
import { DelegationTag } from "./delegations.tsx";
import { Revoke } from "./revoke.tsx";

interface DelegationPageProps {
  readonly delegationId: string;
  /** The revocation id of the block. Must not be empty if several delegations have the same delegation id. */
  readonly revocationId: string;
}

/** Shows one block of a token: its chain, the blocks below it, and its revocation. */
export function DelegationPage({ delegationId, revocationId }: DelegationPageProps) {
  const [isAsking, setAsking] = useState(false);
  const connection = useRevocationWake();
  const chain = useQuery(
    DelegationService.method.getDelegationChain,
    { delegationId, revocationId },
    { refetchInterval: unlessRefused(readPause(connection, 3_000)) },
  );
  const all = useInfiniteQuery(
    DelegationService.method.listDelegations,
    { pageSize: 1_000, pageToken: "" },
    { pageParamKey: "pageToken", getNextPageParam: ({ nextPageToken }) => nextPageToken || undefined },
  );
  const blocks = chain.data?.delegations ?? [];
  const shownBlock = blocks.at(-1);
  const knownDelegations = all.data?.pages.flatMap(({ delegations }) => delegations) ?? [];
  const affected = shownBlock === undefined ? [] : consequencesOf(shownBlock, knownDelegations);
  return (
    <>
      <nav aria-label="Path" className="crumbs">
        <a href={hashOf({ page: "tokens" })}>Tokens</a>
      </nav>
      {chain.isPending && <Opening what="Delegation" />}
      {chain.isError && shownBlock === undefined && <NotShown what="Delegation" error={chain.error} />}
      {shownBlock !== undefined && (
        <>
          <div className="page-head">
            <h1>
              Delegation <Id value={shownBlock.id} max={40} />
            </h1>
            <DelegationTag status={shownBlock.status} />
          </div>
          {shownBlock.status !== DelegationStatus.REVOKED && (
            <div className="actions">
              <button type="button" className="button danger-quiet" onClick={() => setAsking(true)}>
                Revoke
              </button>
            </div>
          )}
          <div className="columns even">
            <Card title="Chain, the root first">
              <ol className="plain-list">
                {blocks.map((block) => (
                  <li key={block.revocationId} className="card">
                    <Block block={block} />
                  </li>
                ))}
              </ol>
            </Card>
            <Card
              title="Ends with a revocation"
              aside={<span className="quiet small-text">{affected.length}</span>}
            >
              <Affected affected={affected} isPartial={all.hasNextPage} />
            </Card>
          </div>
          {isAsking && (
            <Revoke block={shownBlock} onDone={() => void chain.refetch()} onClose={() => setAsking(false)}>
              <Affected affected={affected} isPartial={all.hasNextPage} />
            </Revoke>
          )}
        </>
      )}
    </>
  );
}

function Block({ block }: { readonly block: DelegationRecord }) {
  return (
    <Facts>
      <Fact name="Delegation">
        <a href={hashOf({ page: "tokens", id: block.id, query: { block: block.revocationId } })}>
          <Id value={block.id} max={40} />
        </a>{" "}
        <DelegationTag status={block.status} />
      </Fact>
      <Fact name="From">
        <Id value={block.delegator} max={44} />
      </Fact>
      <Fact name="To">
        <Id value={block.delegatee} max={44} />
      </Fact>
      <Fact name="Contract">{block.contractId !== "" && <Id value={block.contractId} max={40} />}</Fact>
      <Fact name="Depth">{String(block.depth)}</Fact>
      <Fact name="Expires">
        <Time value={block.expireTime} />
      </Fact>
      <Fact name="Ended">{block.endTime && <Time value={block.endTime} />}</Fact>
    </Facts>
  );
}

interface AffectedProps {
  readonly affected: readonly DelegationRecord[];
  readonly isPartial: boolean;
}

/** Lists the delegations that a revocation of the block ends. */
function Affected({ affected, isPartial }: AffectedProps) {
  return (
    <>
      <ul className="plain-list">
        {affected.slice(0, 50).map((each) => (
          <li key={each.revocationId} className="row wrap">
            <Id value={each.id} max={24} />
            <DelegationTag status={each.status} />
            <span className="quiet">
              to <Id value={each.delegatee} />
            </span>
          </li>
        ))}
      </ul>
      {affected.length > 50 && <p className="quiet">and {affected.length - 50} more</p>}
      <p className="quiet small-text">
        {isPartial ? "Only the first 1,000 delegations were searched. " : ""}Tokens that were attenuated
        offline and never recorded end too. Open tasks under these tokens end as revoked.
      </p>
    </>
  );
}
