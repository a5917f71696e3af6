import type { IncomingMessage, ServerResponse } from "node:http";
import type { Http2ServerRequest, Http2ServerResponse } from "node:http2";
import type { Clock } from "@depute/core";
import {
  context,
  propagation,
  SpanKind,
  SpanStatusCode,
  type TextMapGetter,
  trace,
} from "@opentelemetry/api";
import { Counter, Histogram, type Registry } from "prom-client";
import type { HttpRefusal } from "./http-refusal.ts";
import { DURATION_BUCKETS_S } from "./metrics.ts";
import { inService, tracerOf } from "./tracer.ts";

/** A request over HTTP/1.1 or HTTP/2, in Node's common form. */
export type HttpRequest = IncomingMessage | Http2ServerRequest;
export type HttpResponse = ServerResponse | Http2ServerResponse;

/** The percent-decoded values of a path's placeholders. */
export type PathParameters = Readonly<Record<string, string>>;

/** One route of plain HTTP, which a server serves in addition to its RPCs. */
export interface HttpRoute {
  /**
   * HTTP methods that the route serves; other methods get 405. If the list is empty, the route refuses every request to
   * its paths with 404, in the form of `refuse`. A route of GET also serves HEAD, without a body.
   */
  readonly methods: readonly string[];
  /** Media types that the route accepts as its body; absent if the route reads no body. */
  readonly takes?: readonly string[];
  /**
   * An exact path, or a path with placeholders. A placeholder such as `{agent}` matches one segment; `{rest...}` also
   * matches slashes.
   */
  readonly path: string;
  /**
   * Writes the server's refusals at this path: 405 for another method, and 404 if `methods` is empty. If absent, the
   * server refuses in the Connect protocol's JSON form.
   */
  readonly refuse?: Refuse;
  /**
   * Serves the request. If the function throws a DeputeError, the response is that error as JSON. Any other
   * exception is reported as INTERNAL and logged.
   */
  readonly handle: (
    request: HttpRequest,
    response: HttpResponse,
    parameters: PathParameters,
  ) => Promise<void>;
}

/** Answers a request with a refusal, in the form of the protocol that the path serves. */
export type Refuse = (request: HttpRequest, response: HttpResponse, refusal: HttpRefusal) => void;

export type RouteMatch =
  | { route: HttpRoute; parameters: PathParameters }
  /** A route has the path, but does not serve the requested method. If `allow` is empty, the route serves no method. */
  | { allow: readonly string[]; refuse?: Refuse | undefined };

/**
 * Returns a function that finds the route of a request: exact paths first, then patterns in the order of the list. The
 * function returns undefined if no route has the path.
 */
export function createRouteTable(
  routes: readonly HttpRoute[],
): (method: string, path: string) => RouteMatch | undefined {
  const exact = new Map<string, HttpRoute[]>();
  const patterns: { regex: RegExp; names: string[]; route: HttpRoute }[] = [];
  for (const route of routes) {
    if (route.path.includes("{")) patterns.push({ ...compile(route.path), route });
    else exact.set(route.path, [...(exact.get(route.path) ?? []), route]);
  }
  return (method, path) => {
    const missed: HttpRoute[] = [];
    for (const route of exact.get(path) ?? []) {
      if (answers(route, method)) return { route, parameters: {} };
      missed.push(route);
    }
    for (const { regex, names, route } of patterns) {
      const match = regex.exec(path);
      const parameters = match === null ? undefined : decode(names, match);
      if (parameters === undefined) continue;
      if (answers(route, method)) return { route, parameters };
      missed.push(route);
    }
    if (missed.length === 0) return undefined;
    const refuse = missed.find((route) => route.refuse !== undefined)?.refuse;
    return { allow: [...new Set(missed.flatMap(allowed))], refuse };
  };
}

function answers({ methods }: HttpRoute, method: string): boolean {
  return methods.includes(method === "HEAD" && !methods.includes("HEAD") ? "GET" : method);
}

function allowed({ methods }: HttpRoute): readonly string[] {
  return methods.flatMap((method) => (method === "GET" ? ["GET", "HEAD"] : [method]));
}

const PLACEHOLDER = /\{(\w+)(\.\.\.)?\}/g;

function compile(path: string): { regex: RegExp; names: string[] } {
  const names: string[] = [];
  let source = "";
  let from = 0;
  for (const match of path.matchAll(PLACEHOLDER)) {
    source += literally(path.slice(from, match.index));
    source += match[2] === undefined ? "([^/]+)" : "(.+)";
    names.push(match[1] ?? "");
    from = match.index + match[0].length;
  }
  return { regex: new RegExp(`^${source}${literally(path.slice(from))}$`), names };
}

function literally(text: string): string {
  return text.replace(/[.*+?^$()|[\]\\{}]/g, "\\$&");
}

/**
 * Returns the decoded values of the placeholders. Undefined if a value is not percent-encoded UTF-8: the path then
 * matches no route.
 */
function decode(names: readonly string[], match: RegExpExecArray): PathParameters | undefined {
  const parameters: Record<string, string> = Object.create(null);
  try {
    names.forEach((name, index) => {
      parameters[name] = decodeURIComponent(match[index + 1] ?? "");
    });
  } catch {
    return undefined;
  }
  return parameters;
}

type ReceivedHeaders = HttpRequest["headers"];

const getter: TextMapGetter<ReceivedHeaders> = {
  keys: (headers) => Object.keys(headers),
  get: (headers, key) => headers[key],
};

/**
 * Counts and times the responses of plain HTTP routes. With tracing, also opens a span for each request. If the client
 * sent the id of a span (W3C `traceparent`), the new span is a child of that span. Calls that a route makes become
 * child spans. Metrics and spans name the route's declared path, never the requested path.
 */
export function observeRoutes(
  routes: readonly HttpRoute[],
  options: { metrics: Registry; tracing: string | false; clock: Clock },
): HttpRoute[] {
  const { clock } = options;
  const { tallyOf } = httpMetrics(options.metrics);
  return routes.map((route) => ({
    ...route,
    handle(request, response, parameters) {
      const begin = clock.monotonic();
      const method = request.method ?? "";
      response.once("close", () => {
        tallyOf(route.path).end(method, response.statusCode, (clock.monotonic() - begin) / 1000);
      });
      const answer = () => route.handle(request, response, parameters);
      if (options.tracing === false) return answer();
      return traced({ service: options.tracing, route: route.path }, request, response, answer);
    },
  }));
}

/**
 * Answers in a span whose name and attributes follow OpenTelemetry's conventions for HTTP servers, without the
 * requested path.
 */
function traced<T>(
  { service, route }: { readonly service: string; readonly route: string },
  request: HttpRequest,
  response: HttpResponse,
  answer: () => T,
): T {
  const parent = propagation.extract(context.active(), request.headers, getter);
  const method = request.method ?? "";
  const attributes = { "http.request.method": method, "http.route": route };
  const span = tracerOf(service).startSpan(
    `${method} ${route}`,
    { kind: SpanKind.SERVER, attributes },
    parent,
  );
  response.once("close", () => {
    const { statusCode } = response;
    span.setAttribute("http.response.status_code", statusCode);
    if (statusCode >= 500) {
      span.setAttribute("error.type", String(statusCode));
      span.setStatus({ code: SpanStatusCode.ERROR });
    }
    span.end();
  });
  return context.with(inService(trace.setSpan(parent, span), service), answer);
}

const perRegistry = new WeakMap<Registry, ReturnType<typeof registerHttpMetrics>>();

function httpMetrics(registry: Registry) {
  let metrics = perRegistry.get(registry);
  if (metrics === undefined) {
    metrics = registerHttpMetrics(registry);
    perRegistry.set(registry, metrics);
  }
  return metrics;
}

/**
 * Counts the answers of one route. An answer only increments plain numbers, which a scrape converts to Prometheus's
 * form.
 */
interface RouteTally {
  /** The numbers of answers by `<method> <status>`. */
  readonly ended: Map<string, number>;
  end(method: string, status: number, seconds: number): void;
}

function registerHttpMetrics(registry: Registry) {
  const registers = [registry];
  const tallies = new Map<string, RouteTally>();
  new Counter({
    name: "depute_http_requests_total",
    help: "Plain HTTP requests that were answered, by status.",
    labelNames: ["route", "method", "status"],
    registers,
    collect() {
      this.reset();
      for (const [route, { ended }] of tallies) {
        for (const [key, count] of ended) {
          const [method = "", status = ""] = key.split(" ");
          this.inc({ route, method, status }, count);
        }
      }
    },
  });
  const duration = new Histogram({
    name: "depute_http_duration_seconds",
    help: "Time from a plain HTTP request's arrival to the end of its answer; for streams, to their last event.",
    labelNames: ["route"],
    buckets: DURATION_BUCKETS_S,
    registers,
  });
  const createTally = (route: string): RouteTally => {
    const observed = duration.labels({ route });
    const ended = new Map<string, number>();
    return {
      ended,
      end(method, status, seconds) {
        const key = `${method} ${status}`;
        ended.set(key, (ended.get(key) ?? 0) + 1);
        observed.observe(seconds);
      },
    };
  };
  return {
    tallyOf(route: string): RouteTally {
      let tally = tallies.get(route);
      if (tally === undefined) {
        tally = createTally(route);
        tallies.set(route, tally);
      }
      return tally;
    },
  };
}
