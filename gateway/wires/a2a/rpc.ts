import { fromJsonString } from "@bufbuild/protobuf";
import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import { type A2AService, AgentCardSchema } from "@depute/contracts/lf/a2a/v1/a2a_pb";
import type { Clock } from "@depute/core";
import { refusalIn } from "../../edge/fault.ts";
import { rpcCall } from "../../edge/wire-call.ts";
import { callAt, extensionHeaders } from "./asked.ts";
import type { A2aCall } from "./call.ts";
import type { A2aMethods } from "./methods.ts";
import { requireVersion, VERSION_PARAMETER } from "./parameters.ts";

/**
 * Implements lf.a2a.v1.A2AService for all agents. The field `tenant` of each request names the agent. (A2A
 * 10)
 */
export function a2aService(methods: A2aMethods, clock: Clock): ServiceImpl<typeof A2AService> {
  const called = (context: HandlerContext): A2aCall => {
    requireVersion(context.requestHeader.get(VERSION_PARAMETER));
    const headers = Object.fromEntries(context.requestHeader);
    for (const [name, value] of Object.entries(extensionHeaders(headers))) {
      context.responseHeader.set(name, value);
    }
    return callAt("", { headers }, rpcCall(context, clock));
  };
  return {
    sendMessage: (request, context) => plain(async () => methods.send(request, called(context))),
    async *sendStreamingMessage(request, context) {
      yield* await plain(async () => methods.stream(request, called(context)));
    },
    getTask: (request, context) => plain(async () => methods.getTask(request, called(context))),
    listTasks: (request, context) => plain(async () => methods.listTasks(request, called(context))),
    cancelTask: (request, context) => plain(async () => methods.cancelTask(request, called(context))),
    async *subscribeToTask(request, context) {
      yield* await plain(async () => methods.subscribe(request, called(context)));
    },
    getExtendedAgentCard: (request, context) =>
      plain(async () => {
        const { card } = await methods.extendedCard(request, called(context));
        return fromJsonString(AgentCardSchema, Buffer.from(card).toString());
      }),
    createTaskPushNotificationConfig: (config, context) =>
      plain(async () => methods.webhooks.create(config, called(context))),
    getTaskPushNotificationConfig: (request, context) =>
      plain(async () => methods.webhooks.get(request, called(context))),
    listTaskPushNotificationConfigs: (request, context) =>
      plain(async () => methods.webhooks.list(request, called(context))),
    deleteTaskPushNotificationConfig: (request, context) =>
      plain(async () => {
        await methods.webhooks.delete(request, called(context));
        return {};
      }),
  };
}

/** Returns the result of `call`. Converts its exceptions to the errors that gRPC clients of A2A expect. */
async function plain<T>(call: () => Promise<T>): Promise<T> {
  try {
    return await call();
  } catch (thrown) {
    throw refusalIn(thrown);
  }
}
