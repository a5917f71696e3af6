import { type Context, context, createContextKey, type Tracer, trace } from "@opentelemetry/api";

/** The name of the tracer for spans that belong to no service of the process. */
export const PROCESS_SCOPE = "depute";

const SERVICE = createContextKey("the service whose code runs");

/**
 * Returns the tracer of a service of this process. Spans of the tracer have the OpenTelemetry resource of the service.
 */
export function tracerOf(service: string): Tracer {
  return trace.getTracer(`${PROCESS_SCOPE}.${service}`);
}

/** Returns an OpenTelemetry context in which spans belong to a service. */
export function inService(parent: Context, service: string): Context {
  return parent.setValue(SERVICE, service);
}

/** Returns the tracer of the service whose code is running; the tracer of the process if this is no service's code. */
export function currentTracer(): Tracer {
  const service = context.active().getValue(SERVICE);
  return typeof service === "string" ? tracerOf(service) : trace.getTracer(PROCESS_SCOPE);
}
