import type { ReactNode } from "react";
import type { Connection } from "../rpc/follow.ts";
import { type Refusal, refusalOf } from "../rpc/refusal.ts";
import { Text } from "./text.tsx";

/** Shows that the page is reading its data; `what` names the data. */
export function Loading({ what }: { readonly what: string }) {
  return (
    <p className="quiet" role="status">
      Reading {what}…
    </p>
  );
}

/** Shows a text in place of an empty list. */
export function Empty({ title, children }: { readonly title: string; readonly children?: ReactNode }) {
  return (
    <div className="empty">
      <p className="empty-title">{title}</p>
      {children !== undefined && <p className="quiet">{children}</p>}
    </div>
  );
}

/** Shows the error of a call: its reason, its message and the faulty fields. */
export function Refused({ error }: { readonly error: unknown }) {
  return <RefusalText {...refusalOf(error)} />;
}

/** Shows the error with which the platform refused a stream. Shows nothing in any other state of the connection. */
export function RefusedStream({ connection }: { readonly connection: Connection }) {
  return connection.state === "refused" ? <RefusalText {...connection.refusal} /> : null;
}

function RefusalText({ reason, message, fields }: Refusal) {
  return (
    <div className="refused" role="alert">
      <strong>{reason}</strong> <Text value={message} />
      {fields.length > 0 && (
        <ul>
          {fields.map(({ field, description }) => (
            <li key={`${field} ${description}`}>
              <code>
                <Text value={field} />
              </code>{" "}
              <Text value={description} />
            </li>
          ))}
        </ul>
      )}
    </div>
  );
}

/** Shows the heading of a page while the page reads its object. Screen readers need a heading on every page. */
export function Opening({ what }: { readonly what: string }) {
  return (
    <>
      <h1>{what}</h1>
      <Loading what={`the ${what.toLowerCase()}`} />
    </>
  );
}

/** Shows an error in place of the object that the caller cannot read. */
export function NotShown({ what, error }: { readonly what: string; readonly error: unknown }) {
  return (
    <>
      <h1>{what}</h1>
      <Refused error={error} />
    </>
  );
}

const WORDS = {
  connecting: "Connecting",
  live: "Live",
  reconnecting: "Reconnecting",
  ended: "Complete",
  refused: "Not live",
} as const;

/** Shows whether the page's stream is open. While it is open, the page gets each change at once. */
export function Liveness({ connection }: { readonly connection: Pick<Connection, "state"> }) {
  return (
    <span className={`liveness liveness-${connection.state}`} role="status">
      <span className="liveness-dot" aria-hidden="true" />
      {WORDS[connection.state]}
    </span>
  );
}

/** Shows whether the latest read succeeded, on a page that reads its data at intervals. */
export function Freshness({ query }: { readonly query: { isError: boolean; isSuccess: boolean } }) {
  const state = query.isError ? "reconnecting" : query.isSuccess ? "live" : "connecting";
  return <Liveness connection={{ state }} />;
}
