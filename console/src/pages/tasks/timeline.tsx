import type { TaskEvent } from "@depute/contracts/depute/tasks/v1/task_event_pb";
import { Time } from "../../parts/facts.tsx";
import { ValueView } from "../../parts/json.tsx";
import { Empty } from "../../parts/states.tsx";
import { Text } from "../../parts/text.tsx";
import { eventLine } from "../../rules/task-events.ts";

/** Maximum number of events that the page renders. */
const MAX_SHOWN = 300;

/** Lists the events of a task, newest first. */
export function Timeline({ events }: { readonly events: readonly TaskEvent[] }) {
  if (events.length === 0) return <Empty title="No events yet" />;
  const shownEvents = events.slice(-MAX_SHOWN).reverse();
  return (
    <>
      <ol className="timeline" aria-label="Events, newest first" reversed>
        {shownEvents.map((event) => (
          <TimelineItem key={String(event.sequence)} event={event} />
        ))}
      </ol>
      {events.length > MAX_SHOWN && (
        <p className="quiet small-text">{events.length - MAX_SHOWN} older events are not shown.</p>
      )}
    </>
  );
}

function TimelineItem({ event }: { readonly event: TaskEvent }) {
  const { title, detail, tone } = eventLine(event);
  return (
    <li className={`moment moment-${tone}`}>
      <div className="moment-head">
        <strong>{title}</strong>
        <span className="quiet small-text">
          #{String(event.sequence)} · <Time value={event.eventTime} />
        </span>
      </div>
      {detail !== "" && (
        <div className="moment-detail">
          <Text value={detail} />
        </div>
      )}
      {event.payload.case === "partial" && !event.payload.value.withheld && (
        <details>
          <summary>Partial output</summary>
          <ValueView value={event.payload.value.output} label="Partial output" />
        </details>
      )}
    </li>
  );
}
