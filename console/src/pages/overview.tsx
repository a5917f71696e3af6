import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { useQuery } from "@connectrpc/connect-query";
import { TaskService } from "@depute/contracts/depute/tasks/v1/task_service_pb";
import { ReviewService, ReviewState } from "@depute/contracts/depute/verifier/v1/review_service_pb";
import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { Card } from "../parts/facts.tsx";
import { Plot } from "../parts/plot.tsx";
import { Empty, Liveness, RefusedStream } from "../parts/states.tsx";
import { Line } from "../parts/text.tsx";
import { useNow } from "../rpc/now.ts";
import { useSoon } from "../rpc/soon.ts";
import { useWatchedTasks } from "../rpc/watched-tasks.ts";
import { dollars } from "../rules/money.ts";
import { hashOf } from "../rules/route.ts";
import { type Ranked, tallyOf } from "../rules/tally.ts";
import { OPEN_STATUSES, statusFacts } from "../rules/task-status.ts";
import { lineOf } from "../rules/text.ts";
import { durationText } from "../rules/time.ts";

/** Milliseconds between two reads of the figures that the stream of recent tasks does not contain. */
const READ_MS = 5_000;

/** A change of tasks causes a new read of the figures, at most once in this many milliseconds. */
const SOON_MS = 500;

/** Milliseconds between two updates of the period that the figures cover. */
const CLOCK_MS = 2_000;

/** The length of the period that the plots show, in milliseconds. */
const WINDOW_MS = 30 * 60_000;

/** Maximum number of tasks in one read. If more tasks exist, the page says that its figures are incomplete. */
const MAX_TASKS = 1_000;

/** Shows the figures of the caller's tasks. */
export default function Overview() {
  const now = useNow(CLOCK_MS);
  const [from] = useState(() => timestampFromMs(Date.now() - WINDOW_MS));
  const queries = useQueryClient();
  const readSoon = useSoon(() => void queries.invalidateQueries(), SOON_MS);
  // One stream serves the whole page, because browsers open at most six HTTP/1.1 connections to a host.
  const recent = useWatchedTasks({ createdFrom: from, pageSize: MAX_TASKS }, readSoon);
  const often = { refetchInterval: READ_MS };
  const open = useQuery(
    TaskService.method.listTasks,
    { statuses: [...OPEN_STATUSES], pageSize: MAX_TASKS },
    often,
  );
  const reviews = useQuery(
    ReviewService.method.listReviews,
    { state: ReviewState.PENDING, pageSize: MAX_TASKS },
    often,
  );
  const tally = tallyOf(open.data?.tasks ?? [], recent.tasks, { nowMs: now, windowMs: WINDOW_MS });
  const plus = (query: { data: { nextPageToken: string } | undefined }) =>
    query.data?.nextPageToken ? "+" : "";
  return (
    <>
      <div className="page-head">
        <h1>Overview</h1>
        <Liveness connection={recent.connection} />
      </div>
      <RefusedStream connection={recent.connection} />
      <div className="grid">
        {OPEN_STATUSES.map((status) => (
          <Figure
            key={status}
            name={statusFacts(status).label}
            value={`${tally.open[status] ?? 0}${plus(open)}`}
            href={hashOf({ page: "tasks", query: { status: String(status) } })}
          />
        ))}
        <Figure
          name="Open reviews"
          value={`${reviews.data?.reviews.length ?? 0}${plus(reviews)}`}
          href={hashOf({ page: "reviews" })}
        />
        <Figure name="Ended per minute" value={tally.endedPerMinute.toFixed(1)} />
        <Figure
          name="Latency, median"
          value={tally.medianMs === undefined ? "–" : durationText(tally.medianMs)}
        />
        <Figure name="Latency, 95 %" value={tally.p95Ms === undefined ? "–" : durationText(tally.p95Ms)} />
        <Figure name="Spend in 30 minutes" value={dollars(tally.spent)} />
      </div>
      <p className="quiet small-text note">
        Figures and plots show the last 30 minutes of your tasks
        {recent.hasMore ? `, at most the newest ${MAX_TASKS}` : ""}.
      </p>
      <div className="columns even">
        <Card title="Tasks per minute">
          <Plot
            label="Tasks per minute"
            x={tally.minutes}
            lines={[
              { name: "created", color: "--active", values: tally.created },
              { name: "completed", color: "--good", values: tally.completed },
              { name: "not completed", color: "--bad", values: tally.failed },
            ]}
          />
        </Card>
        <Card title="Latency of completed tasks (seconds)">
          <Plot
            label="Latency in seconds"
            x={tally.minutes}
            lines={[{ name: "median", color: "--accent", values: tally.latency }]}
          />
        </Card>
        <Card title="Spend (US dollars, in total)">
          <Plot
            label="Spend in US dollars"
            x={tally.minutes}
            lines={[{ name: "spend", color: "--waiting", values: tally.spend }]}
          />
        </Card>
        <Card title="Queue by agent">
          <Bars rows={tally.queue} empty="The queue is empty" page="agents" />
        </Card>
        <Card title="Tasks without a result, by reason">
          <Bars rows={tally.reasons} empty="All ended tasks have results" />
        </Card>
        <Card title="Spend by agent">
          <Bars rows={tally.spendByAgent} empty="Nothing was spent" page="agents" format={dollars} />
        </Card>
      </div>
    </>
  );
}

function Figure({
  name,
  value,
  href,
}: {
  readonly name: string;
  readonly value: string;
  readonly href?: string;
}) {
  return (
    <div className="card figure">
      <span className="quiet small-text">{href === undefined ? name : <a href={href}>{name}</a>}</span>
      <span className="figure-value">{value}</span>
    </div>
  );
}

interface BarsProps {
  readonly rows: readonly Ranked[];
  readonly empty: string;
  readonly page?: "agents";
  readonly format?: (value: number) => string;
}

function Bars({ rows, empty, page, format = (value) => value.toLocaleString("en") }: BarsProps) {
  if (rows.length === 0) return <Empty title={empty} />;
  const max = Math.max(...rows.map(({ value }) => value));
  return (
    <ul className="plain-list">
      {rows.map(({ name, value }) => (
        <li key={name} className="ranked">
          {page === undefined ? (
            <Line value={name} max={60} />
          ) : (
            <a href={hashOf({ page, id: name })}>
              <Line value={name} max={60} />
            </a>
          )}
          <progress className="bar" value={value} max={max} aria-label={lineOf(name, 60)} />
          <span className="end">{format(value)}</span>
        </li>
      ))}
    </ul>
  );
}
