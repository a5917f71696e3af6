import { create, type JsonValue } from "@bufbuild/protobuf";
import type { Timestamp } from "@bufbuild/protobuf/wkt";
import {
  type CapabilityFull,
  CompleteEventSchema,
  ContextEnvelopeSchema,
  ContextRequestSchema,
  ContextResponseSchema,
  type DelegateEvent,
  DelegateEventSchema,
  DelegateRequestSchema,
  DiscoverRequestSchema,
  DiscoverResultSchema,
  IntrospectRequestSchema,
  IntrospectResponseSchema,
  InvokeRequestSchema,
  TaskCancelRequestSchema,
  TaskLifecycleResponseSchema,
  TaskResumeRequestSchema,
  TaskStatusRequestSchema,
  TaskStatusResultSchema,
  VerifyRequestSchema,
  VerifyResultSchema,
  VersionMismatchSchema,
} from "@depute/contracts/nekte/v1/nekte_pb";
import { DeputeError, ErrorReason, formatTime, fromTimestamp, isObject } from "@depute/core";
import { encode } from "@depute/wire";
import { refusalIn, WireFault } from "../../edge/fault.ts";
import { EventStream, type JsonRpcEndpoint, type JsonRpcMethod, readParams } from "../../edge/json-rpc.ts";
import { wholeSeconds, withFraction } from "./contexts.ts";
import { toListed } from "./discover.ts";
import { PLATFORM_AGENT } from "./documents.ts";
import { NEKTE_ERRORS } from "./errors.ts";
import { readLastEventId, refusalOfEnd, toError, toSse } from "./events.ts";
import { GUIDES, type Topic } from "./guide.ts";
import type { NekteMethods } from "./methods.ts";
import { stateOfTask } from "./states.ts";

const STREAMING = new Set(["nekte.delegate"]);

/** The dependencies of the endpoints. */
export interface EndpointOptions {
  readonly methods: NekteMethods;
  /**
   * Whether nekte.task.status writes times in milliseconds, as published clients expect, instead of the strings that
   * NEKTE defines.
   */
  readonly epochMs: boolean;
}

/**
 * Serves NEKTE's methods as JSON-RPC.
 *
 * @param agentId the addressed agent; empty if the address is that of all agents
 */
export function endpoint({ methods, epochMs }: EndpointOptions, agentId: string): JsonRpcEndpoint {
  const calls: Record<string, JsonRpcMethod> = {
    async "nekte.discover"(params, call) {
      const request = readParams(DiscoverRequestSchema, params);
      const { version, capabilities } = await methods.discover(agentId, request, call);
      const result = create(DiscoverResultSchema, {
        agent: agentId || PLATFORM_AGENT,
        caps: capabilities.map(toListed),
        v: version,
      });
      return encode(DiscoverResultSchema, result);
    },

    async "nekte.invoke"(params, call) {
      const outcome = await methods.invoke(agentId, readParams(InvokeRequestSchema, params), call);
      if (outcome.kind === "outdated") throw outdated(outcome.schema);
      const { level: resolved_level, out, tokens: tokens_used } = outcome.result;
      return { out, resolved_level, meta: { ms: outcome.ms, tokens_used, task_id: outcome.taskId } };
    },

    async "nekte.delegate"(params, call) {
      try {
        const after = readLastEventId(call.lastEventId);
        const request = readParams(DelegateRequestSchema, wholeSeconds(params, "context"));
        if (call.takesEvents) {
          return new EventStream(await methods.delegate(agentId, request, after, call, toSse));
        }
        return await endOf(await methods.delegate(agentId, request, after, call, ({ event }) => event));
      } catch (thrown) {
        if (!call.takesEvents || isUnauthenticated(thrown)) throw thrown;
        return new EventStream(refused(thrown, params));
      }
    },

    async "nekte.context"(params, call) {
      const request = readParams(ContextRequestSchema, wholeSeconds(completeReference(params), "envelope"));
      const answer = await methods.context(agentId, request, call);
      // The answer to a request for a context is only the context's envelope, and not a ContextResponse.
      if (answer.envelope !== undefined) {
        return withFraction(encode(ContextEnvelopeSchema, answer.envelope));
      }
      return encode(ContextResponseSchema, answer);
    },

    async "nekte.verify"(params, call) {
      const { result } = await methods.verify(agentId, readParams(VerifyRequestSchema, params), call);
      return encode(VerifyResultSchema, result);
    },

    async "nekte.task.cancel"(params, call) {
      const cancelled = await methods.cancel(agentId, readParams(TaskCancelRequestSchema, params), call);
      return encode(TaskLifecycleResponseSchema, create(TaskLifecycleResponseSchema, cancelled));
    },

    async "nekte.task.resume"(params, call) {
      const resumed = await methods.resume(agentId, readParams(TaskResumeRequestSchema, params), call);
      return encode(TaskLifecycleResponseSchema, create(TaskLifecycleResponseSchema, resumed));
    },

    async "nekte.task.status"(params, call) {
      const request = readParams(TaskStatusRequestSchema, params);
      const task = await methods.status(agentId, request, call);
      const { progress, checkpointAvailable } = task;
      const result = create(TaskStatusResultSchema, {
        taskId: request.taskId,
        status: stateOfTask(task),
        checkpointAvailable,
        createdAt: time("createdAt", task.createTime, epochMs),
        updatedAt: time("updatedAt", task.updateTime, epochMs),
        ...(progress === undefined
          ? {}
          : { progress: { processed: progress.processed, total: progress.total } }),
      });
      return encode(TaskStatusResultSchema, result);
    },

    async "nekte.introspect"(params) {
      // The type assertion is safe, because the contract allows only these words.
      const { topic = "all" } = readParams(IntrospectRequestSchema, params);
      return encode(
        IntrospectResponseSchema,
        create(IntrospectResponseSchema, { guide: GUIDES[topic as Topic] }),
      );
    },
  };
  return {
    methods: new Map(Object.entries(calls)),
    errors: NEKTE_ERRORS,
    streaming: STREAMING,
    ignoresUnknown: true,
  };
}

/**
 * Values for members that the contract requires in every envelope. In an envelope that only names a context, these
 * members have no meaning.
 */
const REFERENCE_DEFAULTS = {
  data: null,
  permissions: { forward: false, persist: false, derive: false },
  ttl_s: 1,
};

/**
 * Adds required members to the parameters of nekte.context, because an envelope that only names a context may contain
 * only the id.
 */
function completeReference(params: unknown): unknown {
  if (!isObject(params) || !isObject(params.envelope)) return params;
  if (params.action !== "request" && params.action !== "revoke") return params;
  return { ...params, envelope: { ...REFERENCE_DEFAULTS, ...params.envelope } };
}

/**
 * Returns the data of a delegation's `complete` event, for a client that accepts only JSON.
 *
 * @throws DeputeError if the delegation ends without a `complete` event
 */
async function endOf(events: AsyncIterable<DelegateEvent>): Promise<JsonValue> {
  for await (const event of events) {
    if (event.event.case === "complete") return encode(CompleteEventSchema, event.event.value);
    const refusal = refusalOfEnd(event);
    if (refusal !== undefined) throw refusal;
  }
  throw new DeputeError(ErrorReason.SHUTTING_DOWN, "the task continues: delegate it again to get its result");
}

/** Yields a refusal as the only event of a stream, for a client that accepts events. */
async function* refused(thrown: unknown, params: unknown) {
  const id = isObject(params) && isObject(params.task) ? params.task.id : undefined;
  const event = toError(thrown, typeof id === "string" ? id : "");
  yield toSse({ event: create(DelegateEventSchema, { event }) });
}

/** Whether an error means that the caller is unauthenticated. The HTTP status must show this error. */
function isUnauthenticated(thrown: unknown): boolean {
  return refusalIn(thrown).reason === ErrorReason.UNAUTHENTICATED;
}

/**
 * Returns the error for an invocation that states an outdated version hash. The error contains the current schema, so
 * that the caller can retry immediately. (NEKTE 2, Version Mismatch)
 */
function outdated(schema: CapabilityFull): WireFault {
  const refusal = new DeputeError(
    ErrorReason.VERSION_MISMATCH,
    "the version hash is outdated: repeat the call with current_hash",
    {
      metadata: { capability: schema.id, current_hash: schema.h },
    },
  );
  const data = create(VersionMismatchSchema, { currentHash: schema.h, schema });
  return new WireFault(refusal, encode(VersionMismatchSchema, data));
}

function time<Name extends "createdAt" | "updatedAt">(
  name: Name,
  at: Timestamp | undefined,
  epochMs: boolean,
) {
  const ms = at === undefined ? 0 : fromTimestamp(at);
  return epochMs
    ? ({ case: `${name}Ms`, value: BigInt(ms) } as const)
    : ({ case: `${name}Iso`, value: formatTime(ms) } as const);
}
