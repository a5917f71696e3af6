import type { Task, TaskStatus } from "@depute/contracts/depute/tasks/v1/task_pb";
import { useCallback, useMemo } from "react";
import { Tag, Time } from "../../parts/facts.tsx";
import { Empty, Liveness, Loading, RefusedStream } from "../../parts/states.tsx";
import { type Column, Table } from "../../parts/table.tsx";
import { Id, Line } from "../../parts/text.tsx";
import { goTo } from "../../rpc/place.ts";
import { hashOf } from "../../rules/route.ts";
import { OPEN_STATUSES, STATUSES, statusFacts } from "../../rules/task-status.ts";
import { useTaskRows } from "./rows.ts";

const COLUMNS: readonly Column<Task>[] = [
  {
    title: "Task",
    grow: 3,
    cell: ({ id, description, capabilityId }) => (
      <a className="row-link" href={hashOf({ page: "tasks", id })}>
        <Line value={description || capabilityId || id} max={120} />
      </a>
    ),
  },
  {
    title: "Status",
    grow: 1.4,
    cell: ({ status }) => <Tag tone={statusFacts(status).tone}>{statusFacts(status).label}</Tag>,
  },
  { title: "Agent", grow: 1.6, isWide: true, cell: ({ agentId }) => <Line value={agentId} max={40} /> },
  {
    title: "Progress",
    grow: 1.4,
    isWide: true,
    cell: ({ progress, status }) => <Bar progress={progress} status={status} />,
  },
  { title: "Attempt", grow: 0.6, isWide: true, align: "end", cell: ({ attempt }) => attempt },
  { title: "Id", grow: 1.3, isWide: true, cell: ({ id }) => <Id value={id} /> },
  { title: "Created", grow: 1.1, align: "end", cell: ({ createTime }) => <Time value={createTime} /> },
];

type Query = Readonly<Record<string, string>>;

/** Lists the caller's tasks that match the filters. */
export function TaskList({ query }: { readonly query: Query }) {
  const filter = useMemo(() => filterOf(query), [query]);
  const { rows, watched, pages } = useTaskRows(filter);
  const { fetchNextPage, hasNextPage, isFetchingNextPage } = pages;
  const more = useCallback(() => {
    if (hasNextPage && !isFetchingNextPage) void fetchNextPage();
  }, [fetchNextPage, hasNextPage, isFetchingNextPage]);
  return (
    <>
      <div className="page-head">
        <h1>Tasks</h1>
        <Liveness connection={watched.connection} />
      </div>
      <Filters query={query} />
      <RefusedStream connection={watched.connection} />
      {watched.connection.state === "connecting" && <Loading what="tasks" />}
      {watched.isRead && rows.length === 0 && (
        <Empty title="No tasks">Tasks that you delegate appear here as they come.</Empty>
      )}
      {rows.length > 0 && (
        <>
          <p className="quiet small-text" role="status">
            {rows.length.toLocaleString("en")}
            {hasNextPage ? "+" : ""} tasks
          </p>
          <Table
            label="Tasks"
            rows={rows}
            keyOf={({ id }) => id}
            columns={COLUMNS}
            onEnd={more}
            hasMore={hasNextPage}
          />
        </>
      )}
    </>
  );
}

function Filters({ query }: { readonly query: Query }) {
  const set = (name: string, value: string) =>
    goTo({ page: "tasks", query: { ...query, [name]: value } }, "replace");
  return (
    <form className="filters" aria-label="Filters" onSubmit={(event) => event.preventDefault()}>
      <label className="field">
        Status
        <select value={query.status ?? ""} onChange={(event) => set("status", event.target.value)}>
          <option value="">All</option>
          <option value="open">Open</option>
          {STATUSES.map((status) => (
            <option key={status} value={status}>
              {statusFacts(status).label}
            </option>
          ))}
        </select>
      </label>
      {FIELDS.map(([name, title]) => (
        <label key={name} className="field">
          {title}
          <input
            type="search"
            value={query[name] ?? ""}
            placeholder="All"
            onChange={(event) => set(name, event.target.value)}
          />
        </label>
      ))}
    </form>
  );
}

const FIELDS = [
  ["agent", "Agent id"],
  ["capability", "Capability"],
  ["correlation", "Correlation id"],
] as const;

function filterOf({ status = "", agent = "", capability = "", correlation = "" }: Query) {
  const namedStatuses = STATUSES.filter((each) => String(each) === status);
  const statuses: TaskStatus[] = status === "open" ? [...OPEN_STATUSES] : namedStatuses;
  return { agentId: agent, capabilityId: capability, correlationId: correlation, statuses };
}

/** Shows the progress of a task as a bar with numbers; without a total, only the processed number, or a dash for 0. */
export function Bar({ progress, status }: Pick<Task, "progress" | "status">) {
  const { processed = 0, total = 0 } = progress ?? {};
  if (total === 0)
    return <span className="quiet">{processed > 0 ? processed.toLocaleString("en") : "–"}</span>;
  const { tone } = statusFacts(status);
  return (
    <span className="progress">
      <progress className={`bar bar-${tone}`} value={processed} max={total} aria-label="Progress" />
      <span className="small-text">
        {processed.toLocaleString("en")}/{total.toLocaleString("en")}
      </span>
    </span>
  );
}
