import type { Telemetry, TracedProcess } from "./telemetry.ts";

/**
 * Starts to send traces to an OTLP receiver. The libraries for it load only with an endpoint.
 *
 * @param endpoint the base address of the receiver; empty for none
 */
export async function traceTo(endpoint: string, process: TracedProcess): Promise<Telemetry | undefined> {
  if (endpoint === "") return undefined;
  const { startTelemetry } = await import("./telemetry.ts");
  return startTelemetry(process, endpoint);
}

/** Returns the service whose spans an interceptor records; false if the process records none. */
export function tracedAs(isTracing: boolean, service: string): string | false {
  return isTracing && service;
}
