import { monotonicMs } from "@depute/core";
import {
  context,
  propagation,
  SpanKind,
  SpanStatusCode,
  type TextMapGetter,
  trace,
} from "@opentelemetry/api";
import { Counter, Histogram, type Registry } from "prom-client";
import type { HttpRequest, HttpResponse, HttpRoute } from "./http-routes.ts";
import { DURATION_BUCKETS_S } from "./metrics.ts";

type ReceivedHeaders = HttpRequest["headers"];

const getter: TextMapGetter<ReceivedHeaders> = {
  keys: (headers) => Object.keys(headers),
  get: (headers, key) => headers[key],
};

/**
 * Counts what plain HTTP routes answer, and opens a span for each, under the client's if it sent one (W3C `traceparent`):
 * the calls that a route makes are its children. A route is named by its path as declared, never by what was asked for.
 */
export function observeRoutes(
  routes: readonly HttpRoute[],
  options: { metrics: Registry; tracing: boolean },
): HttpRoute[] {
  const { requests, duration } = httpMetrics(options.metrics);
  return routes.map((route) => ({
    ...route,
    handle(request, response, parameters) {
      const begin = monotonicMs();
      const method = request.method ?? "";
      response.once("close", () => {
        requests.inc({ route: route.path, method, status: String(response.statusCode) });
        duration.observe({ route: route.path }, (monotonicMs() - begin) / 1000);
      });
      const answer = () => route.handle(request, response, parameters);
      return options.tracing ? traced(`${method} ${route.path}`, request, response, answer) : answer();
    },
  }));
}

function traced<T>(name: string, request: HttpRequest, response: HttpResponse, answer: () => T): T {
  const parent = propagation.extract(context.active(), request.headers, getter);
  const span = trace.getTracer("depute").startSpan(name, { kind: SpanKind.SERVER }, parent);
  response.once("close", () => {
    span.setAttribute("http.response.status_code", response.statusCode);
    if (response.statusCode >= 500) span.setStatus({ code: SpanStatusCode.ERROR });
    span.end();
  });
  return context.with(trace.setSpan(parent, span), answer);
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

function registerHttpMetrics(registry: Registry) {
  const registers = [registry];
  return {
    requests: new Counter({
      name: "depute_http_requests_total",
      help: "Plain HTTP requests that were answered, by status.",
      labelNames: ["route", "method", "status"],
      registers,
    }),
    duration: new Histogram({
      name: "depute_http_duration_seconds",
      help: "Time from a plain HTTP request's arrival to the end of its answer; for streams, to their last event.",
      labelNames: ["route"],
      buckets: DURATION_BUCKETS_S,
      registers,
    }),
  };
}
