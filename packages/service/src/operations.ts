import { createHash, timingSafeEqual } from "node:crypto";
import { DeputeError, ErrorReason } from "@depute/core";
import type { HealthState } from "./health.ts";
import { sendJson, sendText } from "./http-answers.ts";
import type { HttpRoute } from "./http-routes.ts";
import type { Registry } from "./metrics.ts";

/** The metrics of a process. */
export interface ServedMetrics {
  readonly registry: Registry;
  /** The bearer token that `/metrics` requires; empty for none. */
  readonly token: string;
}

/**
 * Returns the plain HTTP routes for operators. `/readyz` and `/health` state whether the process should get calls.
 * `/livez` states whether the process responds at all. `/metrics` returns metrics in the format of Prometheus.
 *
 * @param metrics absent if another port serves the metrics
 */
export function operationsRoutes(
  health: Pick<HealthState, "serving" | "services" | "parts">,
  metrics?: ServedMetrics,
): HttpRoute[] {
  const readiness: HttpRoute["handle"] = async (_, response) => {
    const services = wordsOf(health.services);
    const parts = health.parts.size === 0 ? {} : { parts: wordsOf(health.parts) };
    sendJson(response, health.serving ? 200 : 503, { status: word(health.serving), services, ...parts });
  };
  const routes: HttpRoute[] = [
    { methods: ["GET"], path: "/health", handle: readiness },
    { methods: ["GET"], path: "/readyz", handle: readiness },
    {
      methods: ["GET"],
      path: "/livez",
      async handle(_, response) {
        sendJson(response, 200, { status: "LIVE" });
      },
    },
  ];
  return metrics === undefined ? routes : [...routes, metricsRoute(metrics)];
}

function metricsRoute({ registry, token }: ServedMetrics): HttpRoute {
  return {
    methods: ["GET"],
    path: "/metrics",
    async handle(request, response) {
      if (token !== "" && !isBearer(request.headers.authorization, token)) {
        response.setHeader("www-authenticate", 'Bearer realm="metrics"');
        throw new DeputeError(
          ErrorReason.UNAUTHENTICATED,
          "GET /metrics requires the bearer token of metrics",
        );
      }
      sendText(response, 200, await registry.metrics(), { "content-type": registry.contentType });
    },
  };
}

/** Compares digests in constant time, so that the duration reveals nothing about the token. */
function isBearer(authorization: string | undefined, token: string): boolean {
  return timingSafeEqual(digestOf(authorization ?? ""), digestOf(`Bearer ${token}`));
}

function digestOf(text: string): Buffer {
  return createHash("sha256").update(text).digest();
}

function wordsOf(states: ReadonlyMap<string, boolean>): Record<string, string> {
  return Object.fromEntries([...states].map(([name, serving]) => [name, word(serving)]));
}

function word(serving: boolean): string {
  return serving ? "SERVING" : "NOT_SERVING";
}
