import type { DescMethod, Message } from "@bufbuild/protobuf";
import { MethodOptions_IdempotencyLevel } from "@bufbuild/protobuf/wkt";
import type { Interceptor, StreamRequest } from "@connectrpc/connect";
import type { Clock } from "@depute/core";
import type { AuditTrail } from "../audit/audit-trail.ts";
import { MinuteLimit } from "../audit/minute-limit.ts";
import { resourceOf } from "../audit/resource-of.ts";
import { type AuditVerdict, verdictOf } from "../audit/verdict-of.ts";
import { blocksKey, requestIdKey, trustedKey } from "../call-values.ts";
import { callerKey } from "../caller.ts";
import { toConnectError } from "../errors-on-wire.ts";
import { HOP } from "../hop-headers.ts";
import type { Logger } from "../log.ts";
import { circumstancesOf } from "./current-call.ts";
import { type Request, withHooks } from "./outcome.ts";

export interface AuditOptions {
  readonly trail: Pick<AuditTrail, "assertRoom" | "add">;
  /**
   * Methods whose allowed calls are not recorded, because the record of an earlier call covers the same work, e.g.
   * heartbeats.
   */
  readonly quiet: ReadonlySet<DescMethod>;
  /** Whether another service decides on the calls that pass authentication, and records its decisions. */
  readonly isForwarding: boolean;
  readonly clock: Clock;
  readonly log: Logger;
}

/** Maximum number of denials per minute that are recorded for callers without accepted credentials. */
const MAX_ANONYMOUS_PER_MINUTE = 600;

/**
 * Records the decisions on calls: mutating calls that are allowed or denied, and reads that are denied. A call that a
 * service of the platform makes on its own behalf is recorded only if it is denied.
 */
export function auditInterceptor(options: AuditOptions): Interceptor {
  const { trail, isForwarding } = options;
  const anonymous = new MinuteLimit(MAX_ANONYMOUS_PER_MINUTE, options.clock);
  return (next) => async (request) => {
    if (isMutating(request.method) && !isForwarding) assertRoom(trail, request);
    const seen = seenBy(request);
    let answer: Message | undefined;
    const handle: typeof next = async (passed) => {
      const response = await next(passed);
      if (!response.stream) answer = response.message;
      return response;
    };
    return withHooks(handle, seen.request, {
      end(thrown) {
        const verdict = verdictOf(thrown);
        if (verdict === undefined || !isRecorded(options, request, verdict)) return;
        if (isUnknown(request) && !isWithin(anonymous, options.log)) return;
        record(options, request, { verdict, message: seen.message(), answer });
      },
    });
  };
}

/** @throws ConnectError for LIMIT_EXCEEDED */
function assertRoom(trail: AuditOptions["trail"], { contextValues }: Request): void {
  try {
    trail.assertRoom();
  } catch (full) {
    throw toConnectError(full, contextValues.get(requestIdKey));
  }
}

/** Whether the audit log gets this decision. */
function isRecorded(
  { isForwarding, quiet }: AuditOptions,
  request: Request,
  { decision }: AuditVerdict,
): boolean {
  if (isForwarding) return decision === "denied" && isUnknown(request);
  if (decision === "denied") return true;
  return isMutating(request.method) && !quiet.has(request.method) && !isOwn(request);
}

function isMutating({ idempotency }: DescMethod): boolean {
  return idempotency !== MethodOptions_IdempotencyLevel.NO_SIDE_EFFECTS;
}

/** Whether the call ended before its credentials were accepted. */
function isUnknown({ contextValues }: Request): boolean {
  return contextValues.get(callerKey) === undefined;
}

/** Whether a service of the platform makes the call on its own behalf. */
function isOwn({ contextValues, header }: Request): boolean {
  return contextValues.get(trustedKey) && header.get(HOP.origin) === "service";
}

function isWithin(anonymous: MinuteLimit, log: Logger): boolean {
  const taken = anonymous.take();
  if (taken === "over") {
    const max = MAX_ANONYMOUS_PER_MINUTE;
    log.warn({ max }, "the audit log gets no further denials of unknown callers in this minute");
  }
  return taken === "within";
}

interface Ended {
  readonly verdict: AuditVerdict;
  readonly message: Message | undefined;
  readonly answer: Message | undefined;
}

/** Adds a decision to the trail. If the trail is full, a denial is lost, but the caller still gets the error. */
function record({ trail, log }: AuditOptions, request: Request, { verdict, message, answer }: Ended): void {
  const { method, contextValues } = request;
  const output = answer && { desc: method.output, message: answer };
  try {
    if (verdict.decision === "denied") trail.assertRoom();
    trail.add({
      ...{ kind: "call", call: circumstancesOf(request), ...verdict },
      resource: resourceOf({ desc: method.input, message }, output),
      blocks: contextValues.get(blocksKey),
    });
  } catch (err) {
    log.error({ err, rpc: `${method.parent.typeName}/${method.name}` }, "a decision was not recorded");
  }
}

/**
 * Returns the request to pass on, and a function that returns the request's first message. The function returns
 * undefined until the handler has read this message.
 */
function seenBy(request: Request): { request: Request; message: () => Message | undefined } {
  if (!request.stream) return { request, message: () => request.message };
  let first: Message | undefined;
  async function* noted(source: StreamRequest["message"]) {
    for await (const message of source) {
      first ??= message;
      yield message;
    }
  }
  return { request: { ...request, message: noted(request.message) }, message: () => first };
}
