import type { IncomingHttpHeaders } from "node:http";
import type { JsonValue } from "@bufbuild/protobuf";
import { invalid } from "@depute/core";
import {
  CHALLENGE,
  certificateOfRequest,
  errorAnswer,
  fromConnectError,
  HttpRefusal,
  type HttpRequest,
  type HttpResponse,
  type HttpRoute,
  lineOf,
  mediaTypeOf,
  notAcceptable,
  type PathParameters,
  retryHeader,
  sendBytes,
  sendText,
  type Turn,
  takeBody,
} from "@depute/service";
import { answerJsonRpc, type CallNote, type JsonRpcEndpoint } from "./json-rpc.ts";
import { beginLog } from "./request-log.ts";
import {
  ANSWER_MS,
  type Answer,
  type Body,
  JSON_TYPES,
  type JsonAnswer,
  names,
  type Route,
  type Wire,
  type WireRequest,
} from "./route.ts";
import { sendEvents } from "./sse.ts";
import { sendValidated } from "./validated.ts";
import { sendWebResponse, toWebRequest } from "./web.ts";
import { accepts, EVENT_STREAM, wireCall } from "./wire-call.ts";
import type { WireDeps } from "./wire-deps.ts";

/**
 * Serves the routes of a wire. For each request, the gateway checks the headers and the query against the route's
 * declarations, and reads the body within its limits. If the route has a stream of events and the client asks for it,
 * the gateway sends the stream; otherwise it sends the answer. It converts every error to the wire's form, and logs the
 * request.
 */
export function serveWire(wire: Wire, deps: WireDeps): HttpRoute[] {
  const routes = wire.routes.flatMap((route) => {
    const served = new Served(wire, route, deps);
    return methodsOf(route).map((method): HttpRoute => {
      const takes = takenBy(route, method);
      return {
        methods: [method],
        path: route.path,
        ...(takes && { takes }),
        refuse: (...of) => served.refuse(...of),
        handle: (...of) => served.handle(...of),
      };
    });
  });
  return [...routes, ...wire.claims.flatMap((path) => claimed(wire, path, deps))];
}

function methodsOf(route: Route): readonly string[] {
  switch (route.kind) {
    case "json-rpc":
      return ["POST"];
    case "web":
      return route.methods;
    default:
      return [route.method];
  }
}

/**
 * Creates routes that refuse all unknown paths at and below `path`, a path that the wire claims. Such a route matches
 * only if no other route matches.
 */
function claimed(wire: Wire, path: string, deps: WireDeps): HttpRoute[] {
  return [path, `${path}/{rest...}`].map((each) => {
    const served = new Served(wire, { path: each }, deps);
    const handle = () => Promise.reject(new Error("a claimed path has no methods"));
    return { methods: [], path: each, refuse: (...of) => served.refuse(...of), handle };
  });
}

/** Serves one route of a wire. */
class Served<Declared extends Pick<Route, "path">> {
  readonly #wire: Wire;
  readonly #route: Declared;
  readonly #deps: WireDeps;

  constructor(wire: Wire, route: Declared, deps: WireDeps) {
    this.#wire = wire;
    this.#route = route;
    this.#deps = deps;
  }

  async handle(
    this: Served<Route>,
    request: HttpRequest,
    response: HttpResponse,
    parameters: PathParameters,
  ): Promise<void> {
    const wire = this.#wire;
    const route = this.#route;
    const isStream = streamsTo(route, request.headers);
    const timeoutMs =
      route.kind === undefined && !(isStream && route.events) ? (route.timeoutMs ?? ANSWER_MS) : undefined;
    const call = wireCall(request, response, this.#deps, wire.name, timeoutMs);
    const log = beginLog({ wire: wire.name, path: route.path, request, response, call }, this.#deps);
    const notes: CallNote[] = [];
    const headers = wire.headersOf?.(route.path, parameters, request.headers) ?? {};
    for (const [name, value] of Object.entries(headers)) response.setHeader(name, value);
    let turn: Turn | undefined;
    try {
      const query = admitHead(route, request);
      const body = await admitBody(route, request, this.#deps);
      turn = await turnOf(request, call.signal, this.#deps);
      const wireRequest = { parameters, query, headers: request.headers, call, ...(body && { body }) };
      switch (route.kind) {
        case "json-rpc":
          await this.#answerRpc(
            route.endpoint(parameters, wireRequest),
            wireRequest,
            request,
            response,
            notes,
          );
          break;
        case "web": {
          const url = `${this.#deps.publicUrl}${request.url?.split("?", 1)[0] ?? ""}`;
          const web = toWebRequest(request, response, url);
          await sendWebResponse(await route.answer({ ...wireRequest, web, received: request }), response);
          break;
        }
        default:
          if (route.events !== undefined && isStream) {
            await sendEvents(response, await route.events(wireRequest), this.#deps);
          } else {
            this.#send(request, response, await route.answer(wireRequest));
          }
      }
      log({ notes });
    } catch (thrown) {
      if (response.headersSent || response.destroyed) response.destroy();
      else this.#sendError(request, response, thrown, call.requestId);
      log({ thrown });
    } finally {
      turn?.end();
    }
  }

  /** Answers a request that the router has refused. */
  refuse(request: HttpRequest, response: HttpResponse, refusal: HttpRefusal): void {
    const call = wireCall(request, response, this.#deps, this.#wire.name);
    const { name: wire } = this.#wire;
    const log = beginLog({ wire, path: this.#route.path, request, response, call }, this.#deps);
    this.#sendError(request, response, refusal, call.requestId);
    log({ thrown: refusal });
  }

  async #answerRpc(
    endpoint: JsonRpcEndpoint,
    { body, call }: WireRequest & { readonly body?: Body },
    request: HttpRequest,
    response: HttpResponse,
    notes: CallNote[],
  ): Promise<void> {
    const answer = await answerJsonRpc(endpoint, body?.bytes ?? NO_BYTES, call, (note) => notes.push(note));
    switch (answer.kind) {
      case "events":
        return sendEvents(response, answer.events, this.#deps);
      case "json":
        return this.#write(request.headers, response, {
          status: answer.unauthenticated ? 401 : 200,
          body: answer.body,
        });
      case "nothing":
        if (answer.unauthenticated) response.setHeader("www-authenticate", CHALLENGE["www-authenticate"]);
        response.statusCode = answer.unauthenticated ? 401 : 204;
        response.end();
    }
  }

  #send(request: HttpRequest, response: HttpResponse, answer: Answer): void {
    switch (answer.kind) {
      case "document":
        sendValidated(request, response, answer.document);
        break;
      case "text":
        sendText(response, answer.status ?? 200, answer.text, { ...answer.headers });
        break;
      default:
        this.#write(request.headers, response, answer);
    }
  }

  #sendError(request: HttpRequest, response: HttpResponse, thrown: unknown, requestId: string): void {
    const { status, body } = (this.#wire.toError ?? errorAnswer)(thrown, requestId);
    const headers = thrown instanceof HttpRefusal ? thrown.headers : retryHeader(fromConnectError(thrown));
    this.#write(request.headers, response, { status, body, ...(headers && { headers }) });
  }

  /** Writes the JSON value of an answer or an error in the wire's format. */
  #write(
    received: IncomingHttpHeaders,
    response: HttpResponse,
    { status, body, headers = {} }: Omit<JsonAnswer, "kind">,
  ): void {
    const { bytes, type } = (this.#wire.write ?? plainJson)(body, received);
    sendBytes(response, status, bytes, { "content-type": type, ...headers });
  }
}

const NO_BYTES = new Uint8Array();

/**
 * Waits until the request's caller has the turn. Requests without a proven principal share the turns of their network
 * address.
 */
function turnOf(
  request: HttpRequest,
  signal: AbortSignal,
  { turns, principalOf, addresses }: WireDeps,
): Turn | Promise<Turn> {
  const principal = principalOf(request.headers, certificateOfRequest(request));
  return turns.enter(lineOf(principal, addresses.ofRequest(request)), signal);
}

function plainJson(body: JsonValue): { bytes: Uint8Array; type: string } {
  return { bytes: Buffer.from(JSON.stringify(body)), type: "application/json" };
}

/**
 * Checks the headers and the query of a request, and returns the query.
 *
 * @throws HttpRefusal 406; DeputeError INVALID_REQUEST for a query parameter that the route does not declare
 */
export function admitHead(route: Route, { url, headers }: HttpRequest): URLSearchParams {
  const types = answerTypes(route);
  if (!types.some((type) => accepts(headers.accept, type))) throw notAcceptable(types);
  const query = new URLSearchParams(url?.split("?").slice(1).join("?"));
  const { query: knownQuery = [] } = route;
  for (const name of query.keys()) {
    if (knownQuery.includes(name)) continue;
    const others = knownQuery.length === 0 ? "this address has none" : `use ${knownQuery.join(", ")}`;
    throw invalid(
      name.slice(0, MAX_NAME).toWellFormed(),
      `is not a query parameter of this address: ${others}`,
    );
  }
  return query;
}

/** Maximum number of characters of a name that a refusal quotes. */
const MAX_NAME = 64;

/**
 * Whether a route answers a request with its stream of events, by the route's declaration and the request's headers.
 */
function streamsTo(route: Route, headers: IncomingHttpHeaders): boolean {
  return (route.kind === undefined && route.isStream === true) || names(headers, EVENT_STREAM);
}

function answerTypes(route: Route): readonly string[] {
  const { gives = JSON_TYPES } = route;
  if (route.kind === undefined && route.isStream === true) return [EVENT_STREAM];
  const streams = route.kind === "json-rpc" || (route.kind === undefined && route.events !== undefined);
  return streams ? [...gives, EVENT_STREAM] : gives;
}

/**
 * Reads the body of a request; returns undefined if the route takes no body or the client sent none.
 *
 * @throws the errors of takeBody
 */
export async function admitBody(
  route: Route,
  request: HttpRequest,
  { bodies }: Pick<WireDeps, "bodies">,
): Promise<Body | undefined> {
  const { headers } = request;
  const takes = takenBy(route, request.method ?? "");
  if (takes === undefined) return undefined;
  if (route.kind === undefined && route.mayOmitBody === true && isBodyOmitted(headers)) return undefined;
  const maxBytes = Math.min(bodies.maxBytes, route.maxBodyBytes ?? bodies.maxBytes);
  const bytes = await takeBody(request, takes, { ...bodies, maxBytes });
  return { bytes, type: mediaTypeOf(headers["content-type"]) };
}

/**
 * Returns the media types that a route accepts for the body of a request with this HTTP method; undefined if it accepts
 * no body.
 */
export function takenBy(route: Route, method: string): readonly string[] | undefined {
  if (route.kind === undefined) return route.takes;
  return method === "POST" ? JSON_TYPES : undefined;
}

/**
 * Whether the client sent no body. An HTTP/2 body may have no length, so a content type also shows that a body follows.
 */
function isBodyOmitted(headers: IncomingHttpHeaders): boolean {
  const { "content-length": length, "transfer-encoding": coding, "content-type": type } = headers;
  if (length !== undefined) return Number(length) === 0;
  return coding === undefined && type === undefined;
}
