import type { DescMessage, JsonValue, MessageShape } from "@bufbuild/protobuf";
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
import { EventStream, errorOf, type JsonRpcEndpoint, type JsonRpcMethod } from "../../edge/json-rpc.ts";
import type { Events } from "../../edge/route.ts";
import type { WireCall } from "../../edge/wire-call.ts";
import type { A2aCall } from "./call.ts";
import { A2A_ERRORS, detailsOf } from "./errors.ts";
import { readMessage, writeMessage, writePage } from "./json.ts";
import type { A2aMethods } from "./methods.ts";

const STREAMING = new Set(["SendStreamingMessage", "SubscribeToTask"]);

/** Converts the data of a JSON-RPC call to an A2aCall, with the address and the headers of the HTTP request. */
export type Addressed = (call: WireCall) => A2aCall;

/** A2A as JSON-RPC: one method for each RPC. (A2A 9) */
export function endpoint(methods: A2aMethods, addressed: Addressed): JsonRpcEndpoint {
  const calls: Record<string, JsonRpcMethod> = {
    SendMessage: unary(SendMessageRequestSchema, SendMessageResponseSchema, (request, a2aCall) =>
      methods.send(request, a2aCall),
    ),
    SendStreamingMessage: streaming(SendMessageRequestSchema, (request, a2aCall) =>
      methods.stream(request, a2aCall),
    ),
    GetTask: unary(GetTaskRequestSchema, TaskSchema, (request, a2aCall) => methods.getTask(request, a2aCall)),
    async ListTasks(params, call) {
      return writePage(await methods.listTasks(readMessage(ListTasksRequestSchema, params), addressed(call)));
    },
    CancelTask: unary(CancelTaskRequestSchema, TaskSchema, (request, a2aCall) =>
      methods.cancelTask(request, a2aCall),
    ),
    SubscribeToTask: streaming(SubscribeToTaskRequestSchema, (request, a2aCall) =>
      methods.subscribe(request, a2aCall),
    ),
    CreateTaskPushNotificationConfig: unary(
      TaskPushNotificationConfigSchema,
      TaskPushNotificationConfigSchema,
      (config, a2aCall) => methods.webhooks.create(config, a2aCall),
    ),
    GetTaskPushNotificationConfig: unary(
      GetTaskPushNotificationConfigRequestSchema,
      TaskPushNotificationConfigSchema,
      (request, a2aCall) => methods.webhooks.get(request, a2aCall),
    ),
    ListTaskPushNotificationConfigs: unary(
      ListTaskPushNotificationConfigsRequestSchema,
      ListTaskPushNotificationConfigsResponseSchema,
      (request, a2aCall) => methods.webhooks.list(request, a2aCall),
    ),
    async DeleteTaskPushNotificationConfig(params, call) {
      const request = readMessage(DeleteTaskPushNotificationConfigRequestSchema, params);
      await methods.webhooks.delete(request, addressed(call));
      return {};
    },
    async GetExtendedAgentCard(params, call) {
      const request = readMessage(GetExtendedAgentCardRequestSchema, params);
      const { card } = await methods.extendedCard(request, addressed(call));
      return JSON.parse(Buffer.from(card).toString()) as JsonValue;
    },
  };
  const rpcEndpoint: JsonRpcEndpoint = {
    methods: new Map(Object.entries(calls)),
    errors: A2A_ERRORS,
    errorData: detailsOf,
    streaming: STREAMING,
    ignoresUnknown: true,
  };
  return rpcEndpoint;

  function unary<Request extends DescMessage, Response extends DescMessage>(
    input: Request,
    output: Response,
    run: (request: MessageShape<Request>, a2aCall: A2aCall) => Promise<MessageShape<Response>>,
  ): JsonRpcMethod {
    return async (params, call) =>
      writeMessage(output, await run(readMessage(input, params), addressed(call)));
  }

  function streaming<Request extends DescMessage>(
    input: Request,
    run: (request: MessageShape<Request>, a2aCall: A2aCall) => Promise<AsyncGenerator<StreamResponse>>,
  ): JsonRpcMethod {
    return async (params, call, id) => {
      const responses = await run(readMessage(input, params), addressed(call));
      return new EventStream(framed(responses, id, call));
    };
  }

  /**
   * Yields each element of the stream as a JSON-RPC response with the request's id. If the stream fails, the last
   * response contains the error. (A2A 9.4.2)
   */
  async function* framed(
    responses: AsyncGenerator<StreamResponse>,
    id: string | number | null,
    call: WireCall,
  ): Events {
    try {
      for await (const response of responses) {
        yield { data: { jsonrpc: "2.0", id, result: writeMessage(StreamResponseSchema, response) } };
      }
    } catch (thrown) {
      if (call.signal.aborted) return;
      const { code, message, data } = errorOf(rpcEndpoint, thrown, call.requestId);
      yield { data: { jsonrpc: "2.0", id, error: { code, message, data } } };
    }
  }
}
