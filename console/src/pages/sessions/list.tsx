import { useInfiniteQuery } from "@connectrpc/connect-query";
import { type Session, SessionState } from "@depute/contracts/asp/v0/session_pb";
import { SessionService } from "@depute/contracts/depute/tasks/v1/session_service_pb";
import { useCallback } from "react";
import { Tag, TimeText } from "../../parts/facts.tsx";
import { Empty, Freshness, Loading, Refused } from "../../parts/states.tsx";
import { type Column, Table } from "../../parts/table.tsx";
import { Id, Line } from "../../parts/text.tsx";
import { goTo } from "../../rpc/place.ts";
import { unlessRefused } from "../../rpc/refusal.ts";
import { enumWord } from "../../rules/enum-word.ts";
import { hashOf } from "../../rules/route.ts";
import { sessionTone } from "../../rules/session-states.ts";

const COLUMNS: readonly Column<Session>[] = [
  {
    title: "Session",
    grow: 1.6,
    cell: ({ sessionId }) => (
      <a className="row-link" href={hashOf({ page: "sessions", id: sessionId })}>
        <Id value={sessionId} max={24} />
      </a>
    ),
  },
  {
    title: "State",
    grow: 1,
    cell: ({ state }) => <Tag tone={sessionTone(state)}>{enumWord(SessionState, state)}</Tag>,
  },
  {
    title: "Parties",
    grow: 3,
    isWide: true,
    cell: ({ participants }) => (
      <Line value={participants.map(({ agentId }) => agentId).join(", ")} max={120} />
    ),
  },
  { title: "Messages", grow: 0.7, isWide: true, align: "end", cell: ({ messageCount }) => messageCount },
  { title: "Created", grow: 1, align: "end", cell: ({ createdAt }) => <TimeText value={createdAt} /> },
];

/** Lists the sessions of an agent. The page reads the list at intervals, because no RPC streams the list. */
export function SessionList({ agentId }: { readonly agentId: string }) {
  const isNamed = agentId !== "";
  const query = useInfiniteQuery(
    SessionService.method.listSessions,
    { agentId, pageSize: 200, pageToken: "" },
    {
      pageParamKey: "pageToken",
      getNextPageParam: ({ nextPageToken }) => nextPageToken || undefined,
      refetchInterval: unlessRefused(3_000),
      enabled: isNamed,
      retry: false,
    },
  );
  const rows = query.data?.pages.flatMap(({ sessions }) => sessions) ?? [];
  const { fetchNextPage, hasNextPage, isFetchingNextPage } = query;
  const more = useCallback(() => {
    if (hasNextPage && !isFetchingNextPage) void fetchNextPage();
  }, [fetchNextPage, hasNextPage, isFetchingNextPage]);
  return (
    <>
      <div className="page-head">
        <h1>Sessions</h1>
        {isNamed && <Freshness query={query} />}
      </div>
      <Find agentId={agentId} />
      {!isNamed && <Empty title="Name a party">Sessions are listed by one of their agents.</Empty>}
      {isNamed && query.isPending && <Loading what="sessions" />}
      {query.isError && <Refused error={query.error} />}
      {query.isSuccess && rows.length === 0 && <Empty title="No sessions of this agent" />}
      {rows.length > 0 && (
        <Table
          label="Sessions"
          rows={rows}
          keyOf={({ sessionId }) => sessionId}
          columns={COLUMNS}
          onEnd={more}
          hasMore={hasNextPage}
        />
      )}
    </>
  );
}

/** Finds the sessions of an agent, or one session by its id. */
function Find({ agentId }: { readonly agentId: string }) {
  return (
    <form
      className="filters"
      aria-label="Find"
      onSubmit={(event) => {
        event.preventDefault();
        const form = new FormData(event.currentTarget);
        const text = (name: string) => String(form.get(name) ?? "").trim();
        if (text("session") !== "") goTo({ page: "sessions", id: text("session") });
        else goTo({ page: "sessions", query: { agent: text("agent") } });
      }}
    >
      <label className="field">
        Agent (agent://…)
        <input name="agent" type="search" defaultValue={agentId} maxLength={256} />
      </label>
      <label className="field">
        Or the id of a session
        <input name="session" type="search" maxLength={128} />
      </label>
      <div className="field">
        <button type="submit" className="button primary">
          Find
        </button>
      </div>
    </form>
  );
}
