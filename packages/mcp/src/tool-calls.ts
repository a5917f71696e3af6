import type { JsonObject } from "@bufbuild/protobuf";
import { isObject } from "@depute/core";
import type { Server, ServerContext, Tool } from "@modelcontextprotocol/server";
import { assertDeclared } from "./admit-answered.ts";
import { assertHeaders } from "./call-headers.ts";
import type { CallNotices } from "./call-notices.ts";
import { askOf } from "./downstream.ts";
import { createdTask, takesTask } from "./own-tasks.ts";
import { fulfil } from "./rounds.ts";
import { paramHeadersOf } from "./rules/param-headers.ts";
import { INTERNAL_ERROR, INVALID_PARAMS, METHOD_NOT_FOUND, Refusal } from "./rules/refusal.ts";
import { type Era, toolResult } from "./rules/task-form.ts";
import { exchangeOf } from "./tool-exchange.ts";
import type { OwnTool, ToolServerOptions } from "./tool-server-options.ts";

/** Returns the tools as a list shows them. Revisions before 2026-07-28 mark the tools that can run as tasks. */
export function listed<Call>(tools: readonly OwnTool<Call>[], era: Era): Tool[] {
  return tools.map(({ name, description, inputSchema, isReadOnly, begin }) => ({
    name,
    description,
    inputSchema,
    annotations: { readOnlyHint: isReadOnly },
    ...(begin !== undefined && era === "legacy" && { execution: { taskSupport: "optional" as const } }),
  }));
}

/** The server that a tool call reaches, and the call's messages to the client. */
export interface ToolCall<Call> {
  readonly server: Server;
  readonly era: Era;
  readonly hasSession: boolean;
  readonly options: ToolServerOptions<Call>;
  readonly tools: ReadonlyMap<string, OwnTool<Call>>;
  readonly notices: CallNotices;
}

/**
 * Calls a tool. If the tool refuses, the function returns the refusal as a result, so that a model can read it and
 * correct the call (MCP, "Error Handling").
 *
 * @throws Refusal for an unknown tool, for malformed arguments, for HTTP headers that disagree with the arguments, for
 * a task request to a tool without tasks, and for questions that the client cannot answer; the errors of `respond`
 */
export async function callTool<Call>(
  toolCall: ToolCall<Call>,
  params: Readonly<Record<string, unknown>>,
  context: ServerContext,
): Promise<JsonObject> {
  const { server, era, options, tools, notices } = toolCall;
  const { http, mcpReq } = context;
  const { name, arguments: args = {} } = params;
  const tool = typeof name === "string" ? tools.get(name) : undefined;
  if (tool === undefined)
    throw new Refusal(INVALID_PARAMS, "the tool does not exist: list the tools to see their names", {});
  if (!isObject(args)) throw new Refusal(INVALID_PARAMS, "the arguments must be an object", {});
  const asTask = takesTask(server, era, params);
  if (asTask && tool.begin === undefined && era === "legacy")
    throw new Refusal(
      METHOD_NOT_FOUND,
      "the tool does not run as a task: call it without the parameter task",
      {},
    );
  const httpHeaders = era === "modern" ? http?.req?.headers : undefined;
  assertHeaders(paramHeadersOf(tool.inputSchema), args, httpHeaders);
  if (tool.respond !== undefined) return responded(tool.respond, args, toolCall, context);
  const exchange = exchangeOf<Call>(http?.authInfo);
  const { call } = exchange;
  try {
    if (!asTask || tool.begin === undefined) return { ...toolResult(await tool.run(args, call, notices)) };
    const task = await tool.begin(args, call);
    return task.result === undefined || era === "legacy" ? createdTask(era, task) : { ...task.result };
  } catch (thrown) {
    const refused = options.httpRefusalOf(thrown, mcpReq.id, call);
    if (refused !== undefined) exchange.refusal = refused;
    return { ...toolResult(options.refusalOf(thrown, call), true) };
  }
}

/**
 * Returns the result of a tool that uses `respond`. In an MCP session, the client answers the tool's questions during
 * the call.
 *
 * @throws Refusal if the result asks questions that the client cannot answer
 */
async function responded<Call>(
  respond: NonNullable<OwnTool<Call>["respond"]>,
  args: Readonly<Record<string, unknown>>,
  { server, era, hasSession }: ToolCall<Call>,
  context: ServerContext,
): Promise<JsonObject> {
  const result = await respond(args, context);
  if (result.resultType !== "input_required") return result;
  if (era === "modern") {
    const asked = isObject(result.inputRequests) ? Object.values(result.inputRequests) : [];
    for (const each of asked) assertDeclared(each, { ...server.getClientCapabilities() });
    return result;
  }
  if (!hasSession)
    throw new Refusal(
      INTERNAL_ERROR,
      "the tool needs input, which clients of revisions before 2026-07-28 can send only in a session",
      { reason: "DEPENDENCY_UNAVAILABLE" },
    );
  const final = await fulfil(result, {
    client: { capabilities: { ...server.getClientCapabilities() }, ask: askOf(context) },
    admit: async () => {},
    again: ({ inputResponses, requestState }) =>
      respond(args, {
        ...context,
        mcpReq: {
          ...context.mcpReq,
          ...(inputResponses !== undefined && { inputResponses }),
          requestState: <T>() => requestState as T | undefined,
        },
      }),
    abandon: () => {},
  });
  return final as JsonObject;
}
