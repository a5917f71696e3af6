import { context, propagation, trace } from "@opentelemetry/api";
import { AsyncLocalStorageContextManager } from "@opentelemetry/context-async-hooks";
import { W3CTraceContextPropagator } from "@opentelemetry/core";
import { OTLPTraceExporter } from "@opentelemetry/exporter-trace-otlp-http";
import { resourceFromAttributes } from "@opentelemetry/resources";
import { BatchSpanProcessor, type SpanProcessor, TracerProvider } from "@opentelemetry/sdk-trace";

export interface TelemetryOptions {
  /** The process's name in traces. */
  serviceName: string;
  /** Base address of an OTLP/HTTP receiver; `/v1/traces` is added. */
  endpoint: string;
}

/** The recording of traces. */
export interface Telemetry {
  /** Sends the remaining spans, and stops the recording. */
  shutdown(): Promise<void>;
}

/** Starts recording spans and sending them to an OTLP receiver. */
export function startTelemetry({ serviceName, endpoint }: TelemetryOptions): Telemetry {
  const exporter = new OTLPTraceExporter({ url: `${endpoint}/v1/traces` });
  return startTracing(serviceName, new BatchSpanProcessor({ exporter }));
}

/**
 * Starts recording spans with a given processor. {@link startTelemetry} passes a processor for an OTLP
 * receiver.
 */
export function startTracing(serviceName: string, processor: SpanProcessor): Telemetry {
  const provider = new TracerProvider({
    resource: resourceFromAttributes({ "service.name": serviceName, "service.namespace": "depute" }),
    spanProcessors: [processor],
  });
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
  propagation.setGlobalPropagator(new W3CTraceContextPropagator());
  trace.setGlobalTracerProvider(provider);
  return {
    async shutdown() {
      await provider.shutdown();
      trace.disable();
      propagation.disable();
      context.disable();
    },
  };
}
