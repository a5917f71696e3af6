import type { IncomingHttpHeaders } from "node:http";
import type { JsonValue } from "@bufbuild/protobuf";
import type { HttpRequest, PathParameters } from "@depute/service";
import type { JsonRpcEndpoint } from "./json-rpc.ts";
import type { SseEvent } from "./sse.ts";
import type { Validated } from "./validated.ts";
import type { WireCall } from "./wire-call.ts";

/** The media types of routes that read and write only JSON. */
export const JSON_TYPES: readonly string[] = ["application/json"];

/** A request body that the gateway has read completely. */
export interface Body {
  readonly bytes: Buffer;
  /** The media type of the body, in lower case, without parameters. */
  readonly type: string;
}

/** A request as the handlers of a wire receive it. */
export interface WireRequest {
  readonly parameters: PathParameters;
  readonly query: URLSearchParams;
  readonly headers: IncomingHttpHeaders;
  readonly call: WireCall;
  /** The request body. Absent if the route takes none, or if the client omitted an optional body. */
  readonly body?: Body;
}

/** A request for a library that reads a web-standard `Request` and returns a `Response`. */
export interface WebWireRequest extends WireRequest {
  /**
   * The request without its body, which is in the member `body`. The signal of `web` aborts when the client
   * disconnects.
   */
  readonly web: Request;
  readonly received: HttpRequest;
}

export interface JsonAnswer {
  readonly kind: "json";
  readonly status: number;
  readonly body: JsonValue;
  readonly headers?: Readonly<Record<string, string>>;
}

/** The answer of a handler. */
export type Answer =
  | JsonAnswer
  | {
      readonly kind: "text";
      readonly text: string;
      readonly headers: Readonly<Record<string, string>>;
      /** The HTTP status. Default: 200. */
      readonly status?: number;
    }
  /** A document that clients may cache. When they revalidate an unchanged document, they get a short answer (304). */
  | { readonly kind: "document"; readonly document: Validated };

/**
 * A stream of events. A route returns the stream only after the service has admitted the caller. So a refusal still
 * determines the HTTP status.
 */
export type Events = AsyncGenerator<SseEvent, void, undefined>;

/** The declarations that all kinds of routes have. The gateway refuses a request that does not match them. */
interface Declared {
  /** The path in the form of HttpRoute, for example `/cap/agents/{id}`. */
  readonly path: string;
  /** The allowed query parameters. Default: none. A request with another parameter is refused with 400. */
  readonly query?: readonly string[];
  /**
   * The media types of the answers. Default: `application/json`. A request whose `accept` header allows none of them is
   * refused with 406.
   */
  readonly gives?: readonly string[];
  /** Maximum size of the body in bytes, if it is less than DEPUTE_MAX_BODY_BYTES. A larger body is refused with 413. */
  readonly maxBodyBytes?: number;
}

/** One method at one address of a wire. */
export interface MethodRoute extends Declared {
  readonly kind?: undefined;
  /** The HTTP method. A GET route also answers HEAD. */
  readonly method: "GET" | "POST" | "PUT" | "DELETE";
  /** The media types of the body; absent if the route takes no body. Another type is refused with 415. */
  readonly takes?: readonly string[];
  /** Whether the client may omit the body. */
  readonly mayOmitBody?: boolean;
  /**
   * Timeout in milliseconds of each call to a service that the handler makes. Default: {@link ANSWER_MS}. A stream has
   * no timeout.
   */
  readonly timeoutMs?: number;
  /** @throws any error that the wire's `toError` can convert */
  readonly answer: (wireRequest: WireRequest) => Promise<Answer>;
  /**
   * Returns the answer as a stream. Used for a client whose `accept` names `text/event-stream`. Absent if the route has
   * no stream.
   */
  readonly events?: (wireRequest: WireRequest) => Promise<Events>;
  /**
   * Whether the route answers every client with a stream. A client that does not accept `text/event-stream` is refused
   * with 406.
   */
  readonly isStream?: boolean;
}

/** Timeout in milliseconds of a call to a service, for routes without `timeoutMs`. */
export const ANSWER_MS = 30_000;

/**
 * An address that answers JSON-RPC 2.0 by POST. The gateway sets no timeout for the methods' calls to services: the
 * platform's default applies to unary calls, and none to streams.
 */
export interface JsonRpcRoute extends Declared {
  readonly kind: "json-rpc";
  /** @throws any error that the wire's `toError` can convert */
  readonly endpoint: (parameters: PathParameters, wireRequest: WireRequest) => JsonRpcEndpoint;
}

/**
 * A route for a library that reads a web-standard `Request` and returns a `Response`. Only POST has a body,
 * which must be JSON.
 */
export interface WebRoute extends Declared {
  readonly kind: "web";
  readonly methods: readonly ("POST" | "GET" | "DELETE")[];
  /** @throws any error that the wire's `toError` can convert */
  readonly answer: (wireRequest: WebWireRequest) => Promise<Response>;
}

export type Route = MethodRoute | JsonRpcRoute | WebRoute;

/** An error in the form that the wire's protocol defines. */
export interface WireError {
  readonly status: number;
  readonly body: JsonValue;
}

/** A wire: the routes of one protocol. */
export interface Wire {
  /** The wire's name in the log. */
  readonly name: string;
  readonly routes: readonly Route[];
  /**
   * Path prefixes that belong to the wire. The wire refuses a request at or below a prefix in its own error form if no
   * route matches.
   */
  readonly claims: readonly string[];
  /**
   * Converts an exception of a route, or the refusal of a request, to the wire's error form. Default: the error form of
   * Connect's JSON.
   */
  readonly toError?: (thrown: unknown, requestId: string) => WireError;
  /** Writes a JSON answer or an error in the format that these request headers accept. Default: plain JSON. */
  readonly write?: (body: JsonValue, headers: IncomingHttpHeaders) => { bytes: Uint8Array; type: string };
  /** Returns additional headers for every answer at a path. The headers may depend on the request's headers. */
  readonly headersOf?: (
    path: string,
    parameters: PathParameters,
    received: IncomingHttpHeaders,
  ) => Readonly<Record<string, string>>;
}

/** Creates a JSON answer. */
export function json(body: JsonValue, status = 200, headers: Readonly<Record<string, string>> = {}): Answer {
  return { kind: "json", status, body, headers };
}

/** Whether the client's `accept` names a media type explicitly. */
export function names({ accept = "" }: IncomingHttpHeaders, type: string): boolean {
  return accept
    .toLowerCase()
    .split(",")
    .some((one) => one.split(";", 1)[0]?.trim() === type);
}
