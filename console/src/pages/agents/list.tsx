import { createClient } from "@connectrpc/connect";
import { useInfiniteQuery, useTransport } from "@connectrpc/connect-query";
import type { Agent } from "@depute/contracts/depute/registry/v1/agent_pb";
import { AgentService } from "@depute/contracts/depute/registry/v1/agent_service_pb";
import { useCallback, useMemo } from "react";
import { Time } from "../../parts/facts.tsx";
import { Empty, Liveness, Loading, Refused } from "../../parts/states.tsx";
import { type Column, Table } from "../../parts/table.tsx";
import { Line } from "../../parts/text.tsx";
import { useWake } from "../../rpc/wake.ts";
import { hashOf } from "../../rules/route.ts";
import { Health } from "./health.tsx";

const COLUMNS: readonly Column<Agent>[] = [
  {
    title: "Agent",
    grow: 2.2,
    cell: ({ id, displayName }) => (
      <a className="row-link" href={hashOf({ page: "agents", id })}>
        <Line value={displayName || id} max={80} />
      </a>
    ),
  },
  { title: "Health", grow: 1, cell: (agent) => <Health agent={agent} /> },
  { title: "Version", grow: 0.8, isWide: true, cell: ({ version }) => <Line value={version} max={30} /> },
  {
    title: "Capabilities",
    grow: 2,
    isWide: true,
    cell: ({ capabilityIds }) => <Line value={capabilityIds.join(", ") || "–"} max={100} />,
  },
  {
    title: "Organization",
    grow: 1.2,
    isWide: true,
    cell: ({ organization }) => <Line value={organization || "–"} max={40} />,
  },
  { title: "Heartbeat", grow: 1, align: "end", cell: ({ heartbeatTime }) => <Time value={heartbeatTime} /> },
];

/** Lists the agents that the caller may see, and updates when they change. */
export function AgentList() {
  const transport = useTransport();
  const client = useMemo(() => createClient(AgentService, transport), [transport]);
  const connection = useWake("agents", (signal) => client.watchAgents({ sendStart: true }, { signal }));
  const query = useInfiniteQuery(
    AgentService.method.listAgents,
    { pageSize: 200, pageToken: "" },
    {
      pageParamKey: "pageToken",
      getNextPageParam: ({ nextPageToken }) => (nextPageToken === "" ? undefined : nextPageToken),
      refetchInterval: 10_000,
    },
  );
  const rows = query.data?.pages.flatMap(({ agents }) => agents) ?? [];
  const { fetchNextPage, hasNextPage, isFetchingNextPage } = query;
  const more = useCallback(() => {
    if (hasNextPage && !isFetchingNextPage) void fetchNextPage();
  }, [fetchNextPage, hasNextPage, isFetchingNextPage]);
  return (
    <>
      <div className="page-head">
        <h1>Agents</h1>
        <Liveness connection={connection} />
      </div>
      {query.isError && <Refused error={query.error} />}
      {query.isPending && <Loading what="agents" />}
      {query.isSuccess && rows.length === 0 && (
        <Empty title="No agents">Agents appear here as they register.</Empty>
      )}
      {rows.length > 0 && (
        <Table
          label="Agents"
          rows={rows}
          keyOf={({ id }) => id}
          columns={COLUMNS}
          onEnd={more}
          hasMore={hasNextPage}
        />
      )}
    </>
  );
}
