import type { HealthState } from "./health.ts";
import { sendJson, sendText } from "./http-answers.ts";
import type { HttpRoute } from "./http-routes.ts";
import type { Registry } from "./metrics.ts";

/** What whoever operates a process asks it over plain HTTP: `/health` and `/metrics`. */
export function operationsRoutes(health: HealthState, metrics: Registry): HttpRoute[] {
  return [
    {
      methods: ["GET"],
      path: "/health",
      async handle(_, response) {
        const services = Object.fromEntries(
          [...health.services].map(([name, serving]) => [name, word(serving)]),
        );
        sendJson(response, health.serving ? 200 : 503, { status: word(health.serving), services });
      },
    },
    {
      methods: ["GET"],
      path: "/metrics",
      async handle(_, response) {
        sendText(response, 200, await metrics.metrics(), { "content-type": metrics.contentType });
      },
    },
  ];
}

function word(serving: boolean): string {
  return serving ? "SERVING" : "NOT_SERVING";
}
