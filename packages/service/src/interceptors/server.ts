import {
  Code,
  ConnectError,
  type Interceptor,
  type StreamRequest,
  type StreamResponse,
} from "@connectrpc/connect";
import { type Clock, DeputeError, ErrorReason, type Timers } from "@depute/core";
import { iterateUntilAborted, linkSignals, untilAborted } from "../aborts.ts";
import { bytesOf, checkAnswer, countElements } from "../answer-limit.ts";
import { answerCheckedKey, inProcessKey, requestIdKey } from "../call-values.ts";
import { callerInterceptor, type Reach } from "../caller-interceptor.ts";
import type { Credentials } from "../credentials.ts";
import { deadlineInterceptor } from "../deadlines.ts";
import { toConnectError, withNote } from "../errors-on-wire.ts";
import type { Identities } from "../identities/identities.ts";
import type { InternalSecrets } from "../internal-secrets.ts";
import type { Logger } from "../log.ts";
import type { Registry } from "../metrics.ts";
import type { FairTurns } from "../quotas/fair-turns.ts";
import type { Quotas } from "../quotas/quotas.ts";
import { REQUEST_ID_HEADER, requestIdFrom } from "../request-id.ts";
import type { RolesBySettings } from "../roles/caller-roles.ts";
import { type Manners, NO_MANNERS } from "../service-manners.ts";
import { type AuditOptions, auditInterceptor } from "./audit.ts";
import { currentCallInterceptor } from "./current-call.ts";
import { OpenStreams } from "./open-streams.ts";
import { type Next, observeInterceptor, type Request, withHooks } from "./outcome.ts";
import { quotasInterceptor } from "./quotas.ts";
import { type OnRoleDenied, rolesInterceptor } from "./roles.ts";
import { serverTracingInterceptor } from "./tracing.ts";
import { turnsInterceptor } from "./turns.ts";
import { validateInterceptor } from "./validate.ts";

/**
 * Gives each call an id, which logs and further calls in other processes share. The response contains the id, even if
 * the response is an error.
 */
export function requestIdInterceptor(): Interceptor {
  return (next) => async (request) => {
    const id = requestIdFrom(request.header.get(REQUEST_ID_HEADER));
    request.contextValues.set(requestIdKey, id);
    try {
      const response = await next(request);
      response.header.set(REQUEST_ID_HEADER, id);
      return response;
    } catch (thrown) {
      if (thrown instanceof ConnectError) thrown.metadata.set(REQUEST_ID_HEADER, id);
      throw thrown;
    }
  };
}

/**
 * Converts every exception of a handler to the error of the response, also an exception during a stream; see
 * errors-on-wire.ts.
 */
export function errorsInterceptor(manners: Manners = NO_MANNERS): Interceptor {
  return (next) => (request) =>
    withHooks(next, request, {
      mapError(thrown) {
        if (isReset(request.signal, thrown)) return new ConnectError("canceled", Code.Canceled);
        return withNote(
          toConnectError(thrown, request.contextValues.get(requestIdKey)),
          manners.get(request.service.typeName)?.errorNote,
        );
      },
    });
}

/**
 * Whether the caller's connection ended the call. Connect reports a reset stream as INTERNAL, which would be logged as
 * a fault of this process.
 */
function isReset(signal: AbortSignal, thrown: unknown): boolean {
  return thrown instanceof ConnectError && thrown.code === Code.Internal && thrown === signal.reason;
}

/**
 * Refuses list responses that are too long for stock clients. The interceptor skips calls of the fast path, which
 * checks the size itself, and calls within the process, whose responses no client reads.
 */
export function answerLimitInterceptor(): Interceptor {
  const checked = async (next: Next, request: Request) => {
    const response = await next(request);
    if (response.stream) return response;
    const { method, message } = response;
    if (countElements(method.output, message) > 1)
      checkAnswer(method, message, bytesOf(method.output, message));
    return response;
  };
  return (next) => (request) => {
    const { contextValues } = request;
    const isExempt = contextValues.get(answerCheckedKey) || contextValues.get(inProcessKey);
    return isExempt ? next(request) : checked(next, request);
  };
}

/** Returns the error of a stream that ends because this process is draining. */
export function shuttingDown(): DeputeError {
  return new DeputeError(ErrorReason.SHUTTING_DOWN, "this process is shutting down; call again");
}

/**
 * Ends a stream when its caller disconnects, or when the process drains, so that its reader reconnects to another
 * process. Unary calls continue, because they are short and their callers wait for the response.
 */
export function drainInterceptor(stopping: AbortSignal): Interceptor {
  return (next) => (request) => (request.stream ? untilStopped(stopping, next, request) : next(request));
}

async function untilStopped(
  stopping: AbortSignal,
  next: Next,
  request: StreamRequest,
): Promise<StreamResponse> {
  if (stopping.aborted) throw shuttingDown();
  const link = linkSignals(request.signal);
  const onStop = () => link.abort(shuttingDown());
  stopping.addEventListener("abort", onStop, { once: true });
  // The signal also aborts when a call has ended, so this listener runs after the normal end of a stream too.
  link.signal.addEventListener("abort", () => stopping.removeEventListener("abort", onStop), {
    once: true,
  });
  const answer = next({ ...request, signal: link.signal }) as Promise<StreamResponse>;
  const response = await untilAborted(link.signal, answer);
  return { ...response, message: iterateUntilAborted(link.signal, response.message) };
}

export interface ServerInterceptorOptions {
  log: Logger;
  metrics: Registry;
  clock: Clock;
  timers: Timers;
  /** Timeout in milliseconds of a unary call whose caller states none. */
  defaultDeadline: number;
  /** Maximum timeout of a unary call, in milliseconds. */
  maxDeadline: number;
  auth: "open" | "required";
  credentials: Credentials;
  /** Verifies login tokens and client certificates; absent if the settings trust none. */
  identities?: Identities;
  internalSecrets: Pick<InternalSecrets, "accepts">;
  reach: Reach;
  /** The roles that the module's settings give to principals; absent for none. */
  rolesBySettings?: RolesBySettings;
  /** Full names of services that other processes implement; absent for none. Those processes check the roles. */
  forwarded?: ReadonlySet<string>;
  /** Records a call that is refused for its roles; absent if `audit` records such calls. */
  onRoleDenied?: OnRoleDenied;
  /** Records the decisions on calls; absent if the service records its decisions itself. */
  audit?: Omit<AuditOptions, "clock" | "log">;
  /** The quotas of callers; absent for a module whose calls other services count. */
  quotas?: Quotas;
  /** The turns of callers in this process; absent if calls begin without a turn. */
  turns?: FairTurns;
  /** The name of the service whose spans are recorded; false for none. */
  tracing: string | false;
  stopping: AbortSignal;
  /** Differences of services with published contracts from the platform's rules; absent if there are none. */
  manners?: Manners;
}

/** Services that need no authentication, because a health monitor has no credentials for the process. */
const EXEMPT = ["grpc.health.v1.Health"];

/**
 * Returns the interceptors of every call on its way to a handler, outermost first. The call's id comes first, because
 * later interceptors log it. The observer encloses the conversion of errors, so it counts converted errors. The caller
 * is identified, and the caller's roles are checked, before the request is validated.
 */
export function serverInterceptors(options: ServerInterceptorOptions): Interceptor[] {
  const { log, metrics, clock, timers, stopping } = options;
  const roles = {
    credentials: options.credentials,
    bySettings: options.rolesBySettings ?? (() => []),
    forwarded: options.forwarded ?? new Set<string>(),
    ...(options.onRoleDenied && { onDenied: options.onRoleDenied }),
  };
  return [
    requestIdInterceptor(),
    ...(options.tracing === false ? [] : [serverTracingInterceptor(options.tracing)]),
    observeInterceptor(log, metrics, clock),
    ...(options.audit === undefined ? [] : [auditInterceptor({ ...options.audit, clock, log })]),
    errorsInterceptor(options.manners),
    answerLimitInterceptor(),
    deadlineInterceptor({
      defaultMs: options.defaultDeadline,
      maxMs: options.maxDeadline,
      ...(options.manners && { manners: options.manners }),
      clock,
      timers,
    }),
    drainInterceptor(stopping),
    callerInterceptor({ ...options, mode: options.auth, exempt: EXEMPT }),
    ...(options.quotas === undefined ? [] : [quotasInterceptor(options.quotas, timers)]),
    ...(options.turns === undefined ? [] : [turnsInterceptor(options.turns)]),
    currentCallInterceptor(),
    rolesInterceptor(roles),
    new OpenStreams({ ...options, ...roles, mode: options.auth }).interceptor(),
    validateInterceptor(options.manners),
  ];
}
