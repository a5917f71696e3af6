import type { LoadSample } from "./flow.ts";
import type { ServerSample } from "./server.ts";

/** What one minute of the run showed. */
export interface Minute extends ServerSample, LoadSample {
  readonly minute: number;
}
