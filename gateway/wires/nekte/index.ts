import { create, type JsonValue } from "@bufbuild/protobuf";
import type { Timestamp } from "@bufbuild/protobuf/wkt";
import {
  type CapabilityFull,
  CompleteEventSchema,
  ContextEnvelopeSchema,
  ContextRequestSchema,
  ContextResponseSchema,
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
import {
  type HttpRequest,
  type HttpResponse,
  type HttpRoute,
  ownHeaders,
  sendJson,
  sendText,
} from "@depute/service";
import { encode } from "@depute/wire";
import { refusalIn, WireFault } from "../../src/fault.ts";
import { EventStream, type JsonRpcEndpoint, type JsonRpcMethod, readParams } from "../../src/json-rpc.ts";
import { jsonRpcRoute, type WireDeps } from "../../src/json-rpc-route.ts";
import { type WireCall, wireCall } from "../../src/wire-call.ts";
import { toListed } from "./discover.ts";
import { agentCard, PLATFORM_AGENT } from "./documents.ts";
import { NEKTE_ERRORS } from "./errors.ts";
import { readLastEventId, refusalOfEnd, toError, toSse } from "./events.ts";
import { GUIDES, type Topic } from "./guide.ts";
import type { NekteMethods } from "./methods.ts";
import { stateOfTask } from "./states.ts";
import { wholeSeconds, withFraction } from "./ttl.ts";

export interface NekteOptions {
  readonly methods: NekteMethods;
  readonly deps: WireDeps;
  /** Times of nekte.task.status in milliseconds, as published clients want them, instead of the text's strings. */
  readonly epochMs: boolean;
  /** Whether callers have to present credentials. */
  readonly auth: "bearer" | "none";
  /** Whether the platform serves. */
  readonly isServing: () => boolean;
}

/** The NEKTE wire: JSON-RPC for all agents and for each one, cards and the guide. */
export function nekteRoutes(options: NekteOptions): HttpRoute[] {
  const { deps } = options;
  const all = endpoint(options, "");
  return [
    jsonRpcRoute("/nekte", () => all, deps),
    jsonRpcRoute("/nekte/{agent}", ({ agent = "" }) => endpoint(options, agent), deps),
    cardRoute("/.well-known/nekte.json", options),
    // Published clients look for these below the address that they post to.
    cardRoute("/nekte/.well-known/nekte.json", options),
    cardRoute("/nekte/{agent}/.well-known/nekte.json", options),
    healthRoute("/nekte/health", options),
    healthRoute("/nekte/{agent}/health", options),
    {
      methods: ["GET"],
      path: "/api/protocol-guide",
      async handle(_, response) {
        sendText(response, 200, GUIDES.all, {
          "content-type": "text/plain; charset=utf-8",
          "cache-control": "public, max-age=86400",
        });
      },
    },
  ];
}

const STREAMING = new Set(["nekte.delegate"]);

function endpoint({ methods, epochMs }: NekteOptions, agentId: string): JsonRpcEndpoint {
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
        const told = await methods.delegate(agentId, request, after, call);
        return call.takesEvents ? new EventStream(toEvents(told)) : await endOf(told);
      } catch (thrown) {
        if (!call.takesEvents || isUnauthenticated(thrown)) throw thrown;
        return new EventStream(refused(thrown, params));
      }
    },

    async "nekte.context"(params, call) {
      const request = readParams(ContextRequestSchema, wholeSeconds(named(params), "envelope"));
      const answer = await methods.context(agentId, request, call);
      // What was asked for is answered as it is.
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
      const done = await methods.cancel(agentId, readParams(TaskCancelRequestSchema, params), call);
      return encode(TaskLifecycleResponseSchema, create(TaskLifecycleResponseSchema, done));
    },

    async "nekte.task.resume"(params, call) {
      const done = await methods.resume(agentId, readParams(TaskResumeRequestSchema, params), call);
      return encode(TaskLifecycleResponseSchema, create(TaskLifecycleResponseSchema, done));
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
      // The contract allows these words alone.
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

/** What an envelope has to have by its contract, and says nothing of where it only names a context. */
const UNSAID = { data: null, permissions: { forward: false, persist: false, derive: false }, ttl_s: 1 };

/** The parameters of nekte.context; an envelope that names a context may hold its id alone. */
function named(params: unknown): unknown {
  if (!isObject(params) || !isObject(params.envelope)) return params;
  if (params.action !== "request" && params.action !== "revoke") return params;
  return { ...params, envelope: { ...UNSAID, ...params.envelope } };
}

/**
 * The end of a delegation, for a client that takes JSON alone: the data of its `complete` event.
 *
 * @throws DeputeError for every other end
 */
async function endOf(told: Awaited<ReturnType<NekteMethods["delegate"]>>): Promise<JsonValue> {
  for await (const { event } of told) {
    if (event.event.case === "complete") return encode(CompleteEventSchema, event.event.value);
    const refusal = refusalOfEnd(event);
    if (refusal !== undefined) throw refusal;
  }
  throw new DeputeError(ErrorReason.SHUTTING_DOWN, "the task goes on: delegate it again to learn its end");
}

/** A refusal as the one event of a stream, for a client that takes events. */
async function* refused(thrown: unknown, params: unknown) {
  const id = isObject(params) && isObject(params.task) ? params.task.id : undefined;
  const event = toError(thrown, typeof id === "string" ? id : "");
  yield toSse(create(DelegateEventSchema, { event }), undefined);
}

/** Who is not known is told by HTTP's status. */
function isUnauthenticated(thrown: unknown): boolean {
  return refusalIn(thrown).reason === ErrorReason.UNAUTHENTICATED;
}

async function* toEvents(told: Awaited<ReturnType<NekteMethods["delegate"]>>) {
  for await (const { event, sequence } of told) yield toSse(event, sequence);
}

/** NEKTE 2, Version Mismatch: what the caller needs to call again at once. */
function outdated(schema: CapabilityFull): WireFault {
  const refusal = new DeputeError(ErrorReason.VERSION_MISMATCH, "the capability has another version now", {
    metadata: { capability: schema.id, current_hash: schema.h },
  });
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

/** Whether the platform serves, and with it an agent that it knows; 404 for an agent that it does not. */
function healthRoute(path: string, { methods, deps, isServing }: NekteOptions): HttpRoute {
  return {
    methods: ["GET"],
    path,
    async handle(request, response, { agent = "" }) {
      const serves = isServing();
      if (serves && agent !== "") await methods.describe(agent, ownCall(request, response, deps));
      const status = serves ? "SERVING" : "NOT_SERVING";
      sendJson(response, serves ? 200 : 503, { status, agent: agent || PLATFORM_AGENT });
    },
  };
}

/** A call on the platform's own behalf. */
function ownCall(request: HttpRequest, response: HttpResponse, deps: WireDeps): WireCall {
  const call = wireCall(request, response, deps.publicUrl);
  const options = { headers: ownHeaders(call.requestId), signal: call.signal };
  return { ...call, asCaller: options, aside: options };
}

/** An agent card. It is public, so it is asked for on the platform's own behalf. */
function cardRoute(path: string, { methods, deps, auth }: NekteOptions): HttpRoute {
  return {
    methods: ["GET"],
    path,
    async handle(request, response, { agent = "" }) {
      const own = ownCall(request, response, deps);
      const { capabilities } = await methods.discover(agent, create(DiscoverRequestSchema), own);
      const card = agentCard({
        agent: agent || PLATFORM_AGENT,
        description: agent === "" ? "" : await methods.describe(agent, own),
        endpoint: `${deps.publicUrl}/nekte${agent === "" ? "" : `/${encodeURIComponent(agent)}`}`,
        caps: capabilities.map(({ value }) => value?.id ?? ""),
        auth,
      });
      sendJson(response, 200, card);
    },
  };
}
