import { systemClock, systemTimers } from "@depute/core";
import { trace } from "@opentelemetry/api";
import { InMemorySpanExporter, SimpleSpanProcessor } from "@opentelemetry/sdk-trace";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { createDirectTransport } from "../direct-transport.ts";
import { startTracing, type Telemetry } from "../telemetry.ts";
import { EchoService, type EchoTrace, echoClient, echoRoutes } from "../testing/echo.ts";
import { errorsInterceptor } from "./server.ts";
import { clientTracingInterceptor, serverTracingInterceptor } from "./tracing.ts";

let exporter: InMemorySpanExporter;
let telemetry: Telemetry;

beforeEach(() => {
  exporter = new InMemorySpanExporter();
  telemetry = startTracing({ name: "test", version: "" }, new SimpleSpanProcessor({ exporter }));
});

afterEach(() => telemetry.shutdown());

const inside = createDirectTransport({
  clock: systemClock,
  timers: systemTimers,
  routes: echoRoutes({ started: 0, ended: [] } satisfies EchoTrace),
  interceptors: [serverTracingInterceptor("registry"), errorsInterceptor()],
  clientInterceptors: [clientTracingInterceptor()],
});

/** An outer service whose handlers call the inner service, like calls between services of the platform. */
const outside = createDirectTransport({
  clock: systemClock,
  timers: systemTimers,
  routes: (router) =>
    void router.service(EchoService, {
      unary: (request) => echoClient(inside).unary(request),
      async *server(request) {
        yield { text: trace.getActiveSpan()?.spanContext().spanId ?? "" };
        await Promise.resolve();
        yield { text: trace.getActiveSpan()?.spanContext().spanId ?? "" };
        yield await echoClient(inside).unary(request);
      },
    }),
  interceptors: [serverTracingInterceptor("tasks"), errorsInterceptor()],
});

const spans = () =>
  exporter.getFinishedSpans().map((span) => ({
    name: span.name.replace("depute.testing.EchoService/", ""),
    kind: span.kind,
    id: span.spanContext().spanId,
    trace: span.spanContext().traceId,
    parent: span.parentSpanContext?.spanId,
    status: span.status.code,
    service: span.resource.attributes["service.name"],
    error: span.attributes["error.type"],
  }));

const PARENT = { traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01" };

describe("tracing", () => {
  it("follows a call through services, from the caller's own trace", async () => {
    await echoClient(outside).unary({ text: "x" }, { headers: PARENT });
    const [inner, hop, outer] = spans();
    expect(outer).toMatchObject({ name: "Unary", kind: 1, parent: "b7ad6b7169203331" });
    expect(hop).toMatchObject({ name: "Unary", kind: 2, parent: outer?.id });
    expect(inner).toMatchObject({ name: "Unary", kind: 1, parent: hop?.id });
    // A call belongs to the service whose code makes it.
    expect([inner, hop, outer].map((span) => span?.service)).toEqual(["registry", "tasks", "tasks"]);
    for (const span of [inner, hop, outer]) expect(span?.trace).toBe("0af7651916cd43dd8448eb211c80319c");
  });

  it("covers every message of a stream, and ends with it", async () => {
    const texts: string[] = [];
    for await (const { text } of echoClient(outside).server({ text: "x" }, { headers: PARENT })) {
      texts.push(text);
      expect(spans().some(({ name }) => name === "Server")).toBe(false);
    }
    const [inner, hop, outer] = spans();
    expect(texts).toEqual([outer?.id, outer?.id, "x"]);
    expect(hop?.parent).toBe(outer?.id);
    expect(inner?.parent).toBe(hop?.id);
  });

  it("marks a failed call", async () => {
    await echoClient(outside)
      .unary({ do: "refuse" })
      .catch(() => {});
    expect(spans().map(({ status }) => status)).toEqual([2, 2, 2]);
    expect(new Set(spans().map(({ error }) => error)).size).toBe(1);
    expect(spans()[0]?.error).toMatch(/^[a-z_]+$/);
  });
});
