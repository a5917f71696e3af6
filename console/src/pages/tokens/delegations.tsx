import { useInfiniteQuery } from "@connectrpc/connect-query";
import { DelegationStatus } from "@depute/contracts/delegateos/v0/delegation_pb";
import {
  type DelegationRecord,
  DelegationService,
} from "@depute/contracts/depute/tokens/v1/delegation_service_pb";
import { useCallback } from "react";
import { Tag, Time } from "../../parts/facts.tsx";
import { Empty, Freshness, Loading, Refused } from "../../parts/states.tsx";
import { type Column, Table } from "../../parts/table.tsx";
import { Id } from "../../parts/text.tsx";
import { useRevocationWake } from "../../rpc/revocation-wake.ts";
import { enumWord } from "../../rules/enum-word.ts";
import { hashOf } from "../../rules/route.ts";
import type { Tone } from "../../rules/task-status.ts";

const TONES: Readonly<Partial<Record<DelegationStatus, Tone>>> = {
  [DelegationStatus.ACTIVE]: "active",
  [DelegationStatus.COMPLETED]: "good",
  [DelegationStatus.FAILED]: "bad",
  [DelegationStatus.REVOKED]: "bad",
};

const COLUMNS: readonly Column<DelegationRecord>[] = [
  {
    title: "Delegation",
    grow: 1.6,
    cell: ({ id, revocationId }) => (
      <a className="row-link" href={hashOf({ page: "tokens", id, query: { block: revocationId } })}>
        <Id value={id} max={24} />
      </a>
    ),
  },
  { title: "Status", grow: 1, cell: ({ status }) => <DelegationTag status={status} /> },
  { title: "Depth", grow: 0.5, isWide: true, align: "end", cell: ({ depth }) => depth },
  { title: "From", grow: 1.2, isWide: true, cell: ({ delegator }) => <Id value={delegator} /> },
  { title: "To", grow: 1.2, isWide: true, cell: ({ delegatee }) => <Id value={delegatee} /> },
  {
    title: "Contract",
    grow: 1.2,
    isWide: true,
    cell: ({ contractId }) => <Id value={contractId || "–"} max={20} />,
  },
  { title: "Expires", grow: 1, align: "end", cell: ({ expireTime }) => <Time value={expireTime} /> },
];

/**
 * Milliseconds between two reads of the delegations. A stream reports revocations, but no RPC streams new delegations.
 */
const READ_MS = 5_000;

/** Lists the delegations of the caller in the order in which they were recorded. */
export function Delegations() {
  useRevocationWake();
  const query = useInfiniteQuery(
    DelegationService.method.listDelegations,
    { pageSize: 200, pageToken: "" },
    {
      pageParamKey: "pageToken",
      getNextPageParam: ({ nextPageToken }) => (nextPageToken === "" ? undefined : nextPageToken),
      refetchInterval: READ_MS,
    },
  );
  const rows = query.data?.pages.flatMap(({ delegations }) => delegations) ?? [];
  const { fetchNextPage, hasNextPage, isFetchingNextPage } = query;
  const more = useCallback(() => {
    if (hasNextPage && !isFetchingNextPage) void fetchNextPage();
  }, [fetchNextPage, hasNextPage, isFetchingNextPage]);
  if (query.isPending) return <Loading what="delegations" />;
  if (query.isError && query.data === undefined) return <Refused error={query.error} />;
  if (rows.length === 0)
    return <Empty title="No delegations">Tokens that the platform records appear here.</Empty>;
  return (
    <div className="stack">
      <Freshness query={query} />
      <Table
        label="Delegations"
        rows={rows}
        keyOf={({ revocationId }) => revocationId}
        columns={COLUMNS}
        onEnd={more}
        hasMore={hasNextPage}
      />
    </div>
  );
}

export function DelegationTag({ status }: { readonly status: DelegationStatus }) {
  return <Tag tone={TONES[status] ?? "neutral"}>{enumWord(DelegationStatus, status)}</Tag>;
}
