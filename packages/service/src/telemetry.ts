import { randomUuid } from "@depute/core";
import { context, propagation, type TracerProvider as Tracers, trace } from "@opentelemetry/api";
import { AsyncLocalStorageContextManager } from "@opentelemetry/context-async-hooks";
import { W3CTraceContextPropagator } from "@opentelemetry/core";
import { OTLPTraceExporter } from "@opentelemetry/exporter-trace-otlp-http";
import { resourceFromAttributes } from "@opentelemetry/resources";
import { BatchSpanProcessor, type SpanProcessor, TracerProvider } from "@opentelemetry/sdk-trace";
import { PROCESS_SCOPE } from "./tracer.ts";

/** The process that the spans name. */
export interface TracedProcess {
  /** The name of the process, for spans that belong to no service. Default `depute`. */
  readonly name?: string | undefined;
  /** The version of Depute; empty if the program names none. */
  readonly version: string;
}

/** The running recording of spans. */
export interface Telemetry {
  /** Sends the remaining spans, and stops the recording. */
  shutdown(): Promise<void>;
}

/**
 * Starts recording spans and sending them to an OTLP receiver.
 *
 * @param endpoint the base address of an OTLP/HTTP receiver, without `/v1/traces`
 */
export function startTelemetry(process: TracedProcess, endpoint: string): Telemetry {
  const exporter = new OTLPTraceExporter({ url: `${endpoint}/v1/traces` });
  return startTracing(process, new BatchSpanProcessor({ exporter }));
}

/**
 * Starts recording spans, which go to `processor`. Each service of the process has a separate OpenTelemetry resource.
 * The spans of a service therefore have its name as `service.name`, even if one process hosts all services.
 */
export function startTracing(
  { name = PROCESS_SCOPE, version }: TracedProcess,
  processor: SpanProcessor,
): Telemetry {
  const instance = randomUuid();
  const providers = new Map<string, TracerProvider>();
  const providerOf = (service: string): TracerProvider => {
    const known = providers.get(service);
    if (known !== undefined) return known;
    const provider = new TracerProvider({
      resource: resourceFromAttributes({
        "service.name": service,
        "service.namespace": "depute",
        "service.instance.id": instance,
        ...(version !== "" && { "service.version": version }),
      }),
      spanProcessors: [processor],
    });
    providers.set(service, provider);
    return provider;
  };
  const tracers: Tracers = {
    getTracer(scope) {
      const service = scope.startsWith(`${PROCESS_SCOPE}.`) ? scope.slice(PROCESS_SCOPE.length + 1) : name;
      return providerOf(service).getTracer(scope);
    },
  };
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
  propagation.setGlobalPropagator(new W3CTraceContextPropagator());
  trace.setGlobalTracerProvider(tracers);
  return {
    async shutdown() {
      // All providers share this processor, so shutting down the processor is enough.
      await processor.shutdown();
      trace.disable();
      propagation.disable();
      context.disable();
    },
  };
}
