import type { DescMessage, JsonObject, JsonValue, MessageShape } from "@bufbuild/protobuf";
import {
  CancelTaskRequestSchema,
  DeleteTaskPushNotificationConfigRequestSchema,
  GetExtendedAgentCardRequestSchema,
  GetTaskPushNotificationConfigRequestSchema,
  GetTaskRequestSchema,
  ListTaskPushNotificationConfigsRequestSchema,
  ListTaskPushNotificationConfigsResponseSchema,
  ListTasksRequestSchema,
  SendMessageRequestSchema,
  SendMessageResponseSchema,
  type StreamResponse,
  StreamResponseSchema,
  SubscribeToTaskRequestSchema,
  TaskPushNotificationConfigSchema,
  TaskSchema,
} from "@depute/contracts/lf/a2a/v1/a2a_pb";
import { isObject } from "@depute/core";
import { parseJson, refusalOf } from "@depute/wire";
import { type Events, json, type MethodRoute, type Wire, type WireRequest } from "../../edge/route.ts";
import { callAt, extensionHeaders, statedIn } from "./asked.ts";
import type { A2aCall } from "./call.ts";
import { cardAnswer } from "./documents.ts";
import { httpError } from "./http-errors.ts";
import { readMessage, writeMessage, writePage } from "./json.ts";
import { type A2aMethods, SEND_TIMEOUT_MS } from "./methods.ts";
import { requireVersion, VERSION_PARAMETER } from "./parameters.ts";

/** The media type of A2A's HTTP+JSON binding. (A2A 11.1) */
const A2A_JSON = "application/a2a+json";
const MEDIA_TYPES = [A2A_JSON, "application/json"];

/** A2A as HTTP+JSON: a path for each RPC, below the agent's address. (A2A 11) */
export function a2aHttpWire(methods: A2aMethods): Wire {
  return {
    name: "a2a-http",
    claims: ["/a2a"],
    toError: httpError,
    headersOf: (_path, _parameters, received) => extensionHeaders(received),
    write: (body, { accept = "" }) => ({
      bytes: Buffer.from(JSON.stringify(body)),
      // Clients that use an older release of A2A may accept only plain JSON.
      type: accept === "application/json" ? "application/json" : A2A_JSON,
    }),
    routes: [
      ...webhooks(methods),
      {
        ...posts("message:send"),
        timeoutMs: SEND_TIMEOUT_MS,
        answer: unary(SendMessageRequestSchema, SendMessageResponseSchema, (...of) => methods.send(...of)),
      },
      { ...posts("message:stream"), ...streams(SendMessageRequestSchema, (...of) => methods.stream(...of)) },
      {
        ...posts("tasks/{id}:cancel"),
        mayOmitBody: true,
        answer: unary(CancelTaskRequestSchema, TaskSchema, (...of) => methods.cancelTask(...of)),
      },
      // A2A's proto maps SubscribeToTask to GET, but A2A's text maps it to POST. The gateway serves both. (A2A 3.1.6,
      // 11.3)
      {
        ...posts("tasks/{id}:subscribe"),
        mayOmitBody: true,
        ...streams(SubscribeToTaskRequestSchema, (...of) => methods.subscribe(...of)),
      },
      {
        ...gets("tasks/{id}:subscribe"),
        ...streams(SubscribeToTaskRequestSchema, (...of) => methods.subscribe(...of)),
      },
      {
        ...gets("tasks/{id}", ["historyLength"]),
        answer: unary(GetTaskRequestSchema, TaskSchema, (...of) => methods.getTask(...of)),
      },
      {
        ...gets("tasks", LIST_PARAMETERS),
        answer: async (wireRequest) => {
          const call = called(wireRequest);
          return json(
            writePage(await methods.listTasks(requestOf(ListTasksRequestSchema, wireRequest), call)),
          );
        },
      },
      {
        ...gets("extendedAgentCard"),
        answer: async (wireRequest) => {
          const request = requestOf(GetExtendedAgentCardRequestSchema, wireRequest);
          return cardAnswer(await methods.extendedCard(request, called(wireRequest)));
        },
      },
    ],
  };
}

/** The query parameters of ListTasks: its fields except `tenant`, because the path names the agent. */
const LIST_PARAMETERS = ListTasksRequestSchema.fields
  .map(({ jsonName }) => jsonName)
  .filter((name) => name !== "tenant");

/** Returns the routes for webhooks, which A2A calls push notification configs. */
function webhooks({ webhooks: methods }: A2aMethods): MethodRoute[] {
  const all = "tasks/{taskId}/pushNotificationConfigs";
  const config = TaskPushNotificationConfigSchema;
  const list = ListTaskPushNotificationConfigsRequestSchema;
  const page = ListTaskPushNotificationConfigsResponseSchema;
  return [
    { ...posts(all), answer: unary(config, config, (...of) => methods.create(...of)) },
    { ...gets(all, ["pageSize", "pageToken"]), answer: unary(list, page, (...of) => methods.list(...of)) },
    {
      ...gets(`${all}/{id}`),
      answer: unary(GetTaskPushNotificationConfigRequestSchema, config, (...of) => methods.get(...of)),
    },
    {
      ...gets(`${all}/{id}`),
      method: "DELETE",
      answer: async (wireRequest) => {
        const request = requestOf(DeleteTaskPushNotificationConfigRequestSchema, wireRequest);
        await methods.delete(request, called(wireRequest));
        return json({});
      },
    },
  ];
}

function posts(path: string) {
  const query = [VERSION_PARAMETER];
  return {
    method: "POST",
    path: `/a2a/{agent}/${path}`,
    query,
    takes: MEDIA_TYPES,
    gives: MEDIA_TYPES,
  } as const;
}

function gets(path: string, parameters: readonly string[] = []) {
  const query = [VERSION_PARAMETER, ...parameters];
  return { method: "GET", path: `/a2a/{agent}/${path}`, query, gives: MEDIA_TYPES } as const;
}

function unary<Request extends DescMessage, Response extends DescMessage>(
  input: Request,
  output: Response,
  run: (request: MessageShape<Request>, a2aCall: A2aCall) => Promise<MessageShape<Response>>,
): MethodRoute["answer"] {
  return async (wireRequest) => {
    const call = called(wireRequest);
    return json(writeMessage(output, await run(requestOf(input, wireRequest), call)));
  };
}

function streams<Request extends DescMessage>(
  input: Request,
  run: (request: MessageShape<Request>, a2aCall: A2aCall) => Promise<AsyncGenerator<StreamResponse>>,
): Pick<MethodRoute, "answer" | "events" | "isStream"> {
  return {
    isStream: true,
    answer: () => Promise.reject(new Error("a stream has no single answer")),
    events: async (wireRequest) => {
      const call = called(wireRequest);
      return framed(await run(requestOf(input, wireRequest), call), wireRequest);
    },
  };
}

/** Yields each element of the stream as an event. If the stream fails, the last event is named `error`. (A2A 11.7) */
async function* framed(responses: AsyncGenerator<StreamResponse>, { call }: WireRequest): Events {
  try {
    for await (const response of responses) yield { data: writeMessage(StreamResponseSchema, response) };
  } catch (thrown) {
    if (call.signal.aborted) return;
    yield { event: "error", data: httpError(thrown, call.requestId).body };
  }
}

/** Returns the call data of a request. Throws DeputeError PROTOCOL_VERSION_UNSUPPORTED, or the error of callAt. */
function called(wireRequest: WireRequest): A2aCall {
  requireVersion(statedIn(wireRequest));
  return callAt(wireRequest.parameters.agent ?? "", wireRequest, wireRequest.call);
}

/**
 * Builds the request message from body, query and path. If a field occurs several times, the path has priority over the
 * query, and the query over the body. (A2A 11.5)
 *
 * @throws DeputeError MALFORMED_JSON, INVALID_REQUEST, LIMIT_EXCEEDED
 */
function requestOf<Desc extends DescMessage>(schema: Desc, wireRequest: WireRequest): MessageShape<Desc> {
  const { agent: _agent, ...path } = wireRequest.parameters;
  return readMessage(schema, { ...bodyOf(wireRequest), ...fieldsOf(schema, wireRequest.query), ...path });
}

function bodyOf({ body }: WireRequest): JsonObject {
  if (body === undefined || body.bytes.length === 0) return {};
  const parsed = parseJson(body.bytes, { maxBytes: body.bytes.length });
  if (!parsed.ok) throw refusalOf(parsed.error);
  // If the body is JSON but not an object, the message is empty. The refusal then names the missing required fields.
  return isObject(parsed.value) ? (parsed.value as JsonObject) : {};
}

/** Converts query parameters to members of a message's ProtoJSON. */
function fieldsOf(schema: DescMessage, query: URLSearchParams): Record<string, JsonValue> {
  const fields: Record<string, JsonValue> = {};
  for (const { jsonName, scalar } of schema.fields) {
    const text = query.get(jsonName);
    if (text === null) continue;
    const word = scalar === SCALAR_BOOL ? BOOLEANS.get(text) : undefined;
    fields[jsonName] = word ?? text;
  }
  return fields;
}

/** The number of protobuf's scalar type `bool`. */
const SCALAR_BOOL = 8;
const BOOLEANS = new Map([
  ["true", true],
  ["false", false],
]);
