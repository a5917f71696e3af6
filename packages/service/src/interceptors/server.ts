import type { Interceptor } from "@connectrpc/connect";
import type { Clock, Timers } from "@depute/core";
import type { Credentials } from "../credentials.ts";
import type { Logger } from "../log.ts";
import type { Registry } from "../metrics.ts";
import type { Manners } from "../service-manners.ts";
import { answerLimitInterceptor } from "./answer-limit.ts";
import { callerInterceptor } from "./caller.ts";
import { deadlineInterceptor } from "./deadline.ts";
import { drainInterceptor } from "./drain.ts";
import { errorsInterceptor } from "./errors.ts";
import { observeInterceptor } from "./observe.ts";
import { requestIdInterceptor } from "./request-id.ts";
import { serverTracingInterceptor } from "./tracing.ts";
import { validateInterceptor } from "./validate.ts";

export interface ServerInterceptorOptions {
  log: Logger;
  metrics: Registry;
  clock: Clock;
  timers: Timers;
  /** Milliseconds. */
  defaultDeadline: number;
  /** Milliseconds. */
  maxDeadline: number;
  auth: "open" | "required";
  credentials: Credentials;
  internalSecret: string;
  /** See CallerOptions. */
  publicUrl: () => string;
  /** Whether spans are recorded. */
  tracing: boolean;
  stopping: AbortSignal;
  /** How services differ; absent for none that does. */
  manners?: Manners;
}

/** Services that answer anybody: who watches over a process has no credentials for it. */
const EXEMPT = ["grpc.health.v1.Health"];

/**
 * What every call passes on its way to a handler, outermost first.
 *
 * The id comes first because everything after it names the call by it; errors are made before they are counted; who
 * calls is known before the message is looked at.
 */
export function serverInterceptors(options: ServerInterceptorOptions): Interceptor[] {
  const { log, metrics, clock, timers, stopping } = options;
  return [
    requestIdInterceptor(),
    ...(options.tracing ? [serverTracingInterceptor()] : []),
    observeInterceptor(log, metrics),
    errorsInterceptor(options.manners),
    answerLimitInterceptor(),
    deadlineInterceptor({ defaultMs: options.defaultDeadline, maxMs: options.maxDeadline, clock, timers }),
    drainInterceptor(stopping),
    callerInterceptor({ ...options, mode: options.auth, exempt: EXEMPT }),
    validateInterceptor(options.manners),
  ];
}
