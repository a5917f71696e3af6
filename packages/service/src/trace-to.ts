import type { Telemetry, TracedProcess } from "./telemetry.ts";

/**
 * Starts to send traces to an OTLP receiver. Without an endpoint, the function loads no libraries and returns
 * undefined.
 *
 * @param endpoint the base address of the receiver; empty for none
 */
export async function traceTo(endpoint: string, process: TracedProcess): Promise<Telemetry | undefined> {
  if (endpoint === "") return undefined;
  const { startTelemetry } = await import("./telemetry.ts");
  return startTelemetry(process, endpoint);
}

/** Returns the option `tracing` of an interceptor: the name of its service; false if the process records no spans. */
export function tracedAs(isTracing: boolean, service: string): string | false {
  return isTracing && service;
}
