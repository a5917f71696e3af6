import type { ReactNode } from "react";
import type { Connection } from "../rpc/follow.ts";
import { type Refusal, refusalOf } from "../rpc/refusal.ts";
import { Text } from "./text.tsx";

/** Shown while the page reads `what`. */
export function Loading({ what }: { readonly what: string }) {
  return (
    <p className="quiet" role="status">
      Reading {what}…
    </p>
  );
}

/** Shown in place of an empty list. */
export function Empty({ title, children }: { readonly title: string; readonly children?: ReactNode }) {
  return (
    <div className="empty">
      <p className="empty-title">{title}</p>
      {children !== undefined && <p className="quiet">{children}</p>}
    </div>
  );
}

/** The error of a call: its reason, its message and the fields at fault. */
export function Refused({ error }: { readonly error: unknown }) {
  return <RefusalText {...refusalOf(error)} />;
}

/** The error of a stream that the platform refused; nothing for every other state of a connection. */
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

/** Shown while the object of a page loads. It contains a heading, because screen readers need one on every page. */
export function Opening({ what }: { readonly what: string }) {
  return (
    <>
      <h1>{what}</h1>
      <Loading what={`the ${what.toLowerCase()}`} />
    </>
  );
}

/** Shown in place of an object that the caller cannot read. */
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

/** Shows whether the page receives live updates. */
export function Liveness({ connection }: { readonly connection: Pick<Connection, "state"> }) {
  return (
    <span className={`liveness liveness-${connection.state}`} role="status">
      <span className="liveness-dot" aria-hidden="true" />
      {WORDS[connection.state]}
    </span>
  );
}

/** Shows whether the latest of the repeated reads succeeded, so that the page's data are current. */
export function Freshness({ query }: { readonly query: { isError: boolean; isSuccess: boolean } }) {
  const state = query.isError ? "reconnecting" : query.isSuccess ? "live" : "connecting";
  return <Liveness connection={{ state }} />;
}
