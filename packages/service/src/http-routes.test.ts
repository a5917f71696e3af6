import { EventEmitter } from "node:events";
import { systemClock } from "@depute/core";
import { trace } from "@opentelemetry/api";
import { InMemorySpanExporter, SimpleSpanProcessor } from "@opentelemetry/sdk-trace";
import { afterEach, describe, expect, it, test } from "vitest";
import {
  createRouteTable,
  type HttpRequest,
  type HttpResponse,
  type HttpRoute,
  observeRoutes,
} from "./http-routes.ts";
import { createMetrics } from "./metrics.ts";
import { startTracing, type Telemetry } from "./telemetry.ts";

const route = (path: string, ...methods: string[]): HttpRoute => ({ path, methods, handle: async () => {} });
const table = [
  route("/nekte", "POST"),
  route("/nekte/{agent}", "POST"),
  route("/nekte/special", "GET"),
  route("/files/{rest...}", "GET"),
  route("/a.b/{x}/c/{y}", "GET", "PUT"),
  route("/nekte", "GET"),
];
const find = createRouteTable(table);

describe("createRouteTable", () => {
  it.each([
    ["POST", "/nekte", 0, {}],
    ["GET", "/nekte", 5, {}],
    ["HEAD", "/nekte", 5, {}],
    ["HEAD", "/files/a", 3, { rest: "a" }],
    ["POST", "/nekte/bob", 1, { agent: "bob" }],
    ["POST", "/nekte/special", 1, { agent: "special" }],
    ["GET", "/nekte/special", 2, {}],
    ["POST", "/nekte/a%2Fb%20%C3%A9", 1, { agent: "a/b é" }],
    ["POST", "/nekte/__proto__", 1, { agent: "__proto__" }],
    ["GET", "/files/a/b/c", 3, { rest: "a/b/c" }],
    ["PUT", "/a.b/1/c/2", 4, { x: "1", y: "2" }],
  ])("%s %s is route %i", (method, path, index, parameters) => {
    expect(find(method, path)).toEqual({ route: table[index], parameters });
  });

  it.each([
    ["DELETE", "/nekte", ["POST", "GET", "HEAD"]],
    ["PUT", "/nekte/special", ["GET", "HEAD", "POST"]],
    ["POST", "/a.b/1/c/2", ["GET", "HEAD", "PUT"]],
  ])("%s %s is not allowed", (method, path, allow) => {
    expect(find(method, path)).toEqual({ allow });
  });

  it.each(["/", "/nekte/", "/nekte/a/b", "/aXb/1/c/2", "/files/", "/nekte/%ff", "/NEKTE", "//nekte"])(
    "no route is at %s",
    (path) => {
      expect(find("POST", path)).toBeUndefined();
    },
  );
});

let telemetry: Telemetry | undefined;
afterEach(async () => {
  await telemetry?.shutdown();
  telemetry = undefined;
});

const TRACE = "0af7651916cd43dd8448eb211c80319c";
const CALLER = "b7ad6b7169203331";

async function answered(tracing: string | false, status: number) {
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
    { metrics, tracing, clock: systemClock },
  );
  const request = { method: "POST", headers: { traceparent: `00-${TRACE}-${CALLER}-01` } };
  const response = Object.assign(new EventEmitter(), { statusCode: 200 });
  await route?.handle(request as unknown as HttpRequest, response as unknown as HttpResponse, {});
  return { text: await metrics.metrics(), inside };
}

test("an answer is counted under its declared route, never under the requested path", async () => {
  const { text } = await answered(false, 413);
  expect(text).toContain('depute_http_requests_total{route="/nekte/{agent}",method="POST",status="413"} 1');
  expect(text).toContain('depute_http_duration_seconds_count{route="/nekte/{agent}"} 1');
});

test.each([
  [200, 0],
  [503, 2],
])(
  "an answer of %i has a span under the client's span, with the handler's spans below it",
  async (status, code) => {
    const exporter = new InMemorySpanExporter();
    telemetry = startTracing({ name: "test", version: "1.2.3" }, new SimpleSpanProcessor({ exporter }));
    const { inside } = await answered("gateway", status);
    expect(inside).toEqual([TRACE]);
    const [span] = exporter.getFinishedSpans();
    expect(span?.name).toBe("POST /nekte/{agent}");
    expect(span?.parentSpanContext?.spanId).toBe(CALLER);
    expect(span?.status.code).toBe(code);
    expect(span?.attributes).toEqual({
      "http.request.method": "POST",
      "http.route": "/nekte/{agent}",
      "http.response.status_code": status,
      ...(status === 503 && { "error.type": "503" }),
    });
    expect(span?.resource.attributes).toEqual({
      "service.name": "gateway",
      "service.namespace": "depute",
      "service.version": "1.2.3",
      "service.instance.id": expect.stringMatching(/^[0-9a-f-]{36}$/),
    });
  },
);
