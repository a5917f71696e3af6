import { create, createFileRegistry, type Message, setExtension } from "@bufbuild/protobuf";
import type { GenMessage, GenService } from "@bufbuild/protobuf/codegenv2";
import {
  FieldOptionsSchema,
  FileDescriptorProtoSchema,
  FieldDescriptorProto_Label as Label,
  MethodOptions_IdempotencyLevel,
  MethodOptionsSchema,
  FieldDescriptorProto_Type as Type,
} from "@bufbuild/protobuf/wkt";
import {
  FieldRulesSchema,
  field as fieldRules,
  file_buf_validate_validate,
} from "@bufbuild/protovalidate/gen/buf/validate/validate_pb.js";
import { type ConnectRouter, createClient, type HandlerContext, type Transport } from "@connectrpc/connect";
import {
  file_depute_rpc_v1_method_options,
  Role,
  roles,
} from "@depute/contracts/depute/rpc/v1/method_options_pb";
import { DeputeError, ErrorReason } from "@depute/core";
import { callerOf } from "../caller.ts";
import { requestIdOf } from "../request-id.ts";

/**
 * The messages of the echo service, which has every kind of method, for tests of transports and servers. Code builds
 * the service, so that no public contract contains it.
 */

/** `text` has at most 20 characters; `do` selects the handler's behaviour. */
export type EchoRequest = Message<"depute.testing.EchoRequest"> & { text: string; do: string };
export type EchoResponse = Message<"depute.testing.EchoResponse"> & { text: string };

const rules = create(FieldOptionsSchema);
setExtension(
  rules,
  fieldRules,
  create(FieldRulesSchema, { type: { case: "string", value: { maxLen: 20n } } }),
);
const text = { label: Label.OPTIONAL, type: Type.STRING };
const METHOD_OPTIONS = "depute/rpc/v1/method_options.proto";
const options = create(MethodOptionsSchema);
setExtension(options, roles, [Role.ANY]);
const inAndOut = {
  inputType: ".depute.testing.EchoRequest",
  outputType: ".depute.testing.EchoResponse",
  options,
};

const readOnly = create(MethodOptionsSchema, {
  idempotencyLevel: MethodOptions_IdempotencyLevel.NO_SIDE_EFFECTS,
});
setExtension(readOnly, roles, [Role.ANY]);

const registry = createFileRegistry(
  create(FileDescriptorProtoSchema, {
    name: "depute/testing/echo.proto",
    package: "depute.testing",
    syntax: "proto3",
    dependency: ["buf/validate/validate.proto", METHOD_OPTIONS],
    messageType: [
      {
        name: "EchoRequest",
        field: [
          { name: "text", jsonName: "text", number: 1, ...text, options: rules },
          { name: "do", jsonName: "do", number: 2, ...text },
        ],
      },
      { name: "EchoResponse", field: [{ name: "text", jsonName: "text", number: 1, ...text }] },
    ],
    service: [
      {
        name: "EchoService",
        method: [
          { name: "Unary", ...inAndOut },
          { name: "Read", ...inAndOut, options: readOnly },
          { name: "Server", ...inAndOut, serverStreaming: true, options: readOnly },
          { name: "Client", ...inAndOut, clientStreaming: true },
          { name: "Bidi", ...inAndOut, clientStreaming: true, serverStreaming: true },
          { name: "Missing", ...inAndOut },
        ],
      },
    ],
  }),
  (name) => (name === METHOD_OPTIONS ? file_depute_rpc_v1_method_options : file_buf_validate_validate),
);

type Method<Kind extends string> = {
  methodKind: Kind;
  input: GenMessage<EchoRequest>;
  output: GenMessage<EchoResponse>;
};

export const EchoService = registry.getService("depute.testing.EchoService") as unknown as GenService<{
  unary: Method<"unary">;
  read: Method<"unary">;
  server: Method<"server_streaming">;
  client: Method<"client_streaming">;
  bidi: Method<"bidi_streaming">;
  missing: Method<"unary">;
}>;

/** What handlers record for tests. */
export interface EchoTrace {
  /** One entry for each stream whose handler has ended: whether the stream's signal had aborted by then. */
  ended: { aborted: boolean }[];
  started: number;
  /** Number of messages that the flood handler has sent. */
  sent?: number;
}

/** Number of messages that `do: "flood"` adds to the stream, one kilobyte each. */
export const FLOOD = 500;

/** Registers the implementation of the echo service. The method `Missing` has none. */
export function echoRoutes(trace: EchoTrace): (router: ConnectRouter) => void {
  return (router) => {
    router.service(EchoService, {
      unary: (request, context) => answer(request, context, trace),
      read: (request, context) => answer(request, context, trace),
      async *server(request, context) {
        trace.started++;
        context.responseHeader.set("x-begin", "b");
        context.responseTrailer.set("x-end", "e");
        try {
          if (request.do === "refuse") throw refusal();
          for (let n = 1; n <= 3; n++) yield { text: `${request.text}${n}` };
          if (request.do === "flood") {
            for (trace.sent = 0; trace.sent < FLOOD; trace.sent++) yield { text: "x".repeat(1024) };
          }
          if (request.do === "refuse late") throw refusal();
          if (request.do === "hang") await new Promise(() => {});
          if (request.do === "wait") await aborted(context.signal);
        } finally {
          trace.ended.push({ aborted: context.signal.aborted });
        }
      },
      async client(requests) {
        const texts: string[] = [];
        for await (const request of requests) texts.push(request.text);
        return { text: texts.join("+") };
      },
      async *bidi(requests) {
        for await (const request of requests) yield { text: request.text.toUpperCase() };
      },
    });
  };
}

async function answer(
  request: EchoRequest,
  context: HandlerContext,
  trace: EchoTrace,
): Promise<{ text: string }> {
  context.responseHeader.set("x-begin", "b");
  context.responseTrailer.set("x-end", "e");
  switch (request.do) {
    case "refuse":
      throw refusal();
    case "crash":
      throw new TypeError("secret-of-the-house");
    case "hang":
      trace.started++;
      return new Promise(() => {});
    case "wait":
      trace.started++;
      await aborted(context.signal);
      trace.ended.push({ aborted: true });
      return { text: "late" };
    case "caller":
      return { text: JSON.stringify(callerOf(context)) };
    case "request id":
      return { text: requestIdOf(context) };
    case "header":
      return { text: context.requestHeader.get("x-ask") ?? "" };
    default:
      return { text: request.text };
  }
}

function refusal(): DeputeError {
  return new DeputeError(ErrorReason.TASK_NOT_FOUND, "no such task", {
    metadata: { task: "t-1" },
    violations: [{ field: "text", description: "names no task" }],
    cause: new Error("secret-of-the-house"),
  });
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    signal.addEventListener("abort", () => resolve(), { once: true });
  });
}

export function echoClient(transport: Transport) {
  return createClient(EchoService, transport);
}
