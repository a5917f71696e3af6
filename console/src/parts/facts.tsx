import { type Duration, durationMs, type Timestamp, timestampMs } from "@bufbuild/protobuf/wkt";
import type { ReactNode } from "react";
import { useNow } from "../rpc/now.ts";
import type { Tone } from "../rules/task-status.ts";
import { lineOf } from "../rules/text.ts";
import { durationText, relativeText } from "../rules/time.ts";
import { Text } from "./text.tsx";

/** Shows a list of facts about one object: each fact has a name and a value. */
export function Facts({ children }: { readonly children: ReactNode }) {
  return <dl className="facts">{children}</dl>;
}

/** Shows one fact: a name and its value. Shows nothing if the value is absent. */
export function Fact({ name, children }: { readonly name: string; readonly children: ReactNode }) {
  if (children === undefined || children === null || children === "" || children === false) return null;
  return (
    <div className="fact">
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}

/** Shows a word in the color of a tone. */
export function Tag({ tone, children }: { readonly tone: Tone; readonly children: ReactNode }) {
  return <span className={`tag tag-${tone}`}>{children}</span>;
}

/** Shows a time relative to now, or a dash if the time is absent. The exact time is in the element's `title`. */
export function Time({ value }: { readonly value: Timestamp | undefined }) {
  const now = useNow();
  if (value === undefined) return <span className="quiet">–</span>;
  return <TimeMs ms={timestampMs(value)} now={now} />;
}

/**
 * Shows a time, given as ISO 8601 text from a protocol's document, relative to now; a dash if the text is not a time.
 */
export function TimeText({ value }: { readonly value: string }) {
  const now = useNow();
  const ms = Date.parse(value);
  return Number.isNaN(ms) ? <span className="quiet">–</span> : <TimeMs ms={ms} now={now} />;
}

function TimeMs({ ms, now }: { readonly ms: number; readonly now: number }) {
  const exact = new Date(ms).toISOString();
  return (
    <time dateTime={exact} title={exact}>
      {relativeText(ms, now)}
    </time>
  );
}

/** Shows a duration in words; shows nothing if the duration is absent. */
export function Length({ value }: { readonly value: Duration | undefined }) {
  return value === undefined ? null : <span>{durationText(durationMs(value))}</span>;
}

/** Shows a section of a page, with its own heading. */
export function Card({
  title,
  aside,
  children,
}: {
  readonly title: string;
  readonly aside?: ReactNode;
  readonly children: ReactNode;
}) {
  return (
    <section className="card" aria-label={lineOf(title)}>
      <header className="card-head">
        <h2>
          <Text value={title} />
        </h2>
        {aside}
      </header>
      {children}
    </section>
  );
}
