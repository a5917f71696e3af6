import type { Clock, Timers } from "@depute/core";
import type { Authoriser } from "./authoriser.ts";
import type { DecisionReport } from "./call-decision.ts";
import type { ObservedCall, ObservedTaskRequest } from "./observed-call.ts";
import type { UpstreamConfig } from "./rules/read-config.ts";
import type { SchemaCheck } from "./schema-check.ts";
import type { Seal } from "./task-handles.ts";
import type { Upstream } from "./upstream.ts";

export interface ProxyOptions {
  readonly config: UpstreamConfig;
  readonly upstream: Upstream;
  readonly authoriser: Authoriser;
  readonly schemaCheck: SchemaCheck;
  readonly clock: Clock;
  readonly timers: Timers;
  /** Seals the ids of the server's tasks, so that every process with the same key can open these ids. */
  readonly seal: Seal;
  /** The target that a proof in `_delegateos` must name. */
  readonly audience: () => string;
  /**
   * Receives each decision on a call of a tool, or of a method that has a rule. For requests on tasks, it receives
   * decisions on answers and cancellations. For all other requests on tasks, and for subscriptions, it receives only
   * denials.
   */
  readonly onDecision?: DecisionReport;
  /** Called when a call of a tool, or of another method that needs a rule, has ended. */
  readonly onCall?: (call: ObservedCall) => void;
  /** Called when a request on the server's tasks has ended. */
  readonly onTaskRequest?: (request: ObservedTaskRequest) => void;
  /** Receives faults that the proxy does not report to the caller. */
  readonly onFault: (subject: string, thrown: unknown) => void;
}
