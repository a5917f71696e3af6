import { createClient } from "@connectrpc/connect";
import { useQuery, useTransport } from "@connectrpc/connect-query";
import {
  type Review,
  ReviewService,
  ReviewState,
} from "@depute/contracts/depute/verifier/v1/review_service_pb";
import { useMemo } from "react";
import { Tag, Time } from "../../parts/facts.tsx";
import { Empty, Freshness, Loading, Refused } from "../../parts/states.tsx";
import { type Column, Table } from "../../parts/table.tsx";
import { Line } from "../../parts/text.tsx";
import { goTo } from "../../rpc/place.ts";
import { readPause, useWake } from "../../rpc/wake.ts";
import { reviewKind, reviewState } from "../../rules/review-words.ts";
import { hashOf } from "../../rules/route.ts";

/** While the stream of changes is not open, the page reads the reviews at this interval, in milliseconds. */
const READ_MS = 2_000;

const COLUMNS: readonly Column<Review>[] = [
  {
    title: "Review",
    grow: 3,
    cell: ({ id, title }) => (
      <a className="row-link" href={hashOf({ page: "reviews", id })}>
        <Line value={title || id} max={120} />
      </a>
    ),
  },
  { title: "Kind", grow: 1.6, isWide: true, cell: ({ kind }) => reviewKind(kind) },
  {
    title: "State",
    grow: 1.2,
    cell: ({ state }) => <Tag tone={reviewState(state).tone}>{reviewState(state).label}</Tag>,
  },
  { title: "Author", grow: 1.2, isWide: true, cell: ({ author }) => <Line value={author} max={30} /> },
  {
    title: "Reviewers",
    grow: 1.4,
    isWide: true,
    cell: ({ reviewers }) => <Line value={reviewers.join(", ")} max={60} />,
  },
  { title: "Deadline", grow: 1, align: "end", cell: ({ deadlineTime }) => <Time value={deadlineTime} /> },
];

/** Lists the reviews that the caller may decide. */
export function Inbox({ query }: { readonly query: Readonly<Record<string, string>> }) {
  const state = query.state === "all" ? ReviewState.UNSPECIFIED : ReviewState.PENDING;
  const transport = useTransport();
  const client = useMemo(() => createClient(ReviewService, transport), [transport]);
  const connection = useWake("reviews", (signal) => client.watchReviews({ sendStart: true }, { signal }));
  const reviews = useQuery(
    ReviewService.method.listReviews,
    { state, pageSize: 500 },
    { refetchInterval: readPause(connection, READ_MS) },
  );
  const rows = reviews.data?.reviews ?? [];
  return (
    <>
      <div className="page-head">
        <h1>Reviews</h1>
        <Freshness query={reviews} />
      </div>
      <form className="filters" aria-label="Filters" onSubmit={(event) => event.preventDefault()}>
        <label className="field">
          State
          <select
            value={query.state ?? ""}
            onChange={(event) => goTo({ page: "reviews", query: { state: event.target.value } }, "replace")}
          >
            <option value="">Pending</option>
            <option value="all">All</option>
          </select>
        </label>
      </form>
      {reviews.isError && <Refused error={reviews.error} />}
      {reviews.isPending && <Loading what="reviews" />}
      {reviews.isSuccess && rows.length === 0 && (
        <Empty title="Nothing waits for a decision">Results that need approval appear here.</Empty>
      )}
      {rows.length > 0 && <Table label="Reviews" rows={rows} keyOf={({ id }) => id} columns={COLUMNS} />}
    </>
  );
}
