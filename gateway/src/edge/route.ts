import type { IncomingHttpHeaders } from "node:http";
import type { JsonValue } from "@bufbuild/protobuf";
import type { PathParameters } from "@depute/service";
import type { SseEvent } from "../sse.ts";
import type { Validated } from "../validated.ts";
import type { WireCall } from "../wire-call.ts";

/** A body that was read whole. */
export interface Body {
  readonly bytes: Buffer;
  /** Its media type, in lower case, without parameters. */
  readonly type: string;
}

/** A request as the handlers of a wire get it. */
export interface Asked {
  readonly parameters: PathParameters;
  readonly query: URLSearchParams;
  readonly headers: IncomingHttpHeaders;
  readonly call: WireCall;
  /** Absent where the route takes none, or the client left out one that it may leave out. */
  readonly body?: Body;
}

export interface JsonAnswer {
  readonly kind: "json";
  readonly status: number;
  readonly body: JsonValue;
  readonly headers?: Readonly<Record<string, string>>;
}

/** What a handler answers with. */
export type Answer =
  | JsonAnswer
  | { readonly kind: "text"; readonly text: string; readonly headers: Readonly<Record<string, string>> }
  /** A document that a client may keep, and ask for again only when it has changed. */
  | { readonly kind: "document"; readonly document: Validated };

/** A stream of events, once the service has admitted its caller. */
export type Events = AsyncGenerator<SseEvent, void, undefined>;

/** One method at one address of a wire. */
export interface Route {
  /** GET answers HEAD, too. */
  readonly method: "GET" | "POST" | "PUT" | "DELETE";
  /** As in HttpRoute: `/cap/agents/{id}`. */
  readonly path: string;
  /** Media types of its body; absent where it takes none. */
  readonly takes?: readonly string[];
  /** Whether its body may be left out. */
  readonly mayOmitBody?: boolean;
  /** @throws what the wire's `toError` spells */
  readonly answer: (asked: Asked) => Promise<Answer>;
  /** Answers clients that name `text/event-stream` in `accept`; absent where nothing is streamed. */
  readonly events?: (asked: Asked) => Promise<Events>;
}

/** An error as its protocol spells it. */
export interface WireError {
  readonly status: number;
  readonly body: JsonValue;
}

/** A wire, as the edge serves it. */
export interface Wire {
  /** Its name in the log. */
  readonly name: string;
  readonly routes: readonly Route[];
  /** Spells what a route threw, or a body that is refused. Without it errors have the platform's own form (Connect's JSON). */
  readonly toError?: (thrown: unknown, requestId: string) => WireError;
  /** Writes a JSON answer, or an error, for a request with these headers; plain JSON when absent. */
  readonly write?: (body: JsonValue, headers: IncomingHttpHeaders) => { bytes: Uint8Array; type: string };
  /** Headers of every answer at a path. */
  readonly headersOf?: (path: string, parameters: PathParameters) => Readonly<Record<string, string>>;
}

/** An answer in JSON. */
export function json(body: JsonValue, status = 200, headers: Readonly<Record<string, string>> = {}): Answer {
  return { kind: "json", status, body, headers };
}

/** Whether the client names a media type in `accept`. */
export function names({ accept = "" }: IncomingHttpHeaders, type: string): boolean {
  return accept
    .toLowerCase()
    .split(",")
    .some((one) => one.split(";", 1)[0]?.trim() === type);
}
