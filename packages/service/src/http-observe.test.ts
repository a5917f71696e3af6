import { EventEmitter } from "node:events";
import { trace } from "@opentelemetry/api";
import { InMemorySpanExporter, SimpleSpanProcessor } from "@opentelemetry/sdk-trace";
import { afterEach, expect, test } from "vitest";
import { observeRoutes } from "./http-observe.ts";
import type { HttpRequest, HttpResponse } from "./http-routes.ts";
import { createMetrics } from "./metrics.ts";
import { startTracing, type Telemetry } from "./telemetry.ts";

let telemetry: Telemetry | undefined;
afterEach(async () => {
  await telemetry?.shutdown();
  telemetry = undefined;
});

const TRACE = "0af7651916cd43dd8448eb211c80319c";
const CALLER = "b7ad6b7169203331";

async function answered(tracing: boolean, status: number) {
  const metrics = createMetrics();
  const inside: (string | undefined)[] = [];
  const [route] = observeRoutes(
    [
      {
        methods: ["POST"],
        path: "/nekte/{agent}",
        async handle(_, response) {
          await Promise.resolve();
          inside.push(trace.getActiveSpan()?.spanContext().traceId);
          response.statusCode = status;
          response.emit("close");
        },
      },
    ],
    { metrics, tracing },
  );
  const request = { method: "POST", headers: { traceparent: `00-${TRACE}-${CALLER}-01` } };
  const response = Object.assign(new EventEmitter(), { statusCode: 200 });
  await route?.handle(request as unknown as HttpRequest, response as unknown as HttpResponse, {});
  return { text: await metrics.metrics(), inside };
}

test("an answer is counted by its route as declared, never by what was asked for", async () => {
  const { text } = await answered(false, 413);
  expect(text).toContain('depute_http_requests_total{route="/nekte/{agent}",method="POST",status="413"} 1');
  expect(text).toContain('depute_http_duration_seconds_count{route="/nekte/{agent}"} 1');
});

test.each([
  [200, 0],
  [503, 2],
])("an answer of %i has a span under the client's, and what it does is in it", async (status, code) => {
  const exporter = new InMemorySpanExporter();
  telemetry = startTracing("test", new SimpleSpanProcessor({ exporter }));
  const { inside } = await answered(true, status);
  expect(inside).toEqual([TRACE]);
  const [span] = exporter.getFinishedSpans();
  expect(span?.name).toBe("POST /nekte/{agent}");
  expect(span?.parentSpanContext?.spanId).toBe(CALLER);
  expect(span?.status.code).toBe(code);
});
