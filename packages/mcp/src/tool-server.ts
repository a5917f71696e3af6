import type { JsonObject } from "@bufbuild/protobuf";
import type { Clock, Timers } from "@depute/core";
import { isObject } from "@depute/core";
import {
  type AuthInfo,
  createMcpHandler,
  mergeCapabilities,
  Server,
  type ServerContext,
  type Tool,
} from "@modelcontextprotocol/server";
import { assertDeclared } from "./admit-answered.ts";
import { assertHeaders } from "./call-headers.ts";
import { type CallNotices, noticesOf } from "./call-notices.ts";
import { askOf, statusOf, withStatus } from "./downstream.ts";
import { held } from "./held-answer.ts";
import {
  createdTask,
  listenedTasks,
  type OwnTasks,
  serveTasks,
  takesTask,
  taskCapability,
} from "./own-tasks.ts";
import { fulfil } from "./rounds.ts";
import { declaredIn } from "./rules/client-capabilities.ts";
import { listenedTaskIds } from "./rules/listened.ts";
import { paramHeadersOf } from "./rules/param-headers.ts";
import { INTERNAL_ERROR, INVALID_PARAMS, METHOD_NOT_FOUND, Refusal } from "./rules/refusal.ts";
import { type Era, type McpTask, toolResult } from "./rules/task-form.ts";
import { isEventStream, TaskStreams } from "./task-streams.ts";
import { type ToolSession, ToolSessions } from "./tool-sessions.ts";

const JSON_TYPE = "application/json";

/** A tool that this process itself implements. `Call` is the type of the request's context. */
export interface OwnTool<Call> {
  readonly name: string;
  readonly description: string;
  /** JSON Schema of the arguments, for clients. The tool itself validates its arguments. */
  readonly inputSchema: Tool["inputSchema"];
  /** Whether the tool changes nothing. */
  readonly isReadOnly: boolean;
  /** Runs the tool. It may send notices as soon as the platform has accepted the caller's credentials. */
  run(args: Readonly<Record<string, unknown>>, call: Call, notices: CallNotices): Promise<JsonObject>;
  /**
   * Begins the tool's work as a task. The task is stored when this function returns. Absent if the tool never runs as a
   * task.
   */
  begin?(args: Readonly<Record<string, unknown>>, call: Call): Promise<McpTask>;
  /**
   * Serves the calls instead of `run`; absent if `run` serves them. The result has MCP's own form, for example with
   * an image. The context sends progress and log messages to the client.
   */
  respond?(args: Readonly<Record<string, unknown>>, context: ServerContext): Promise<JsonObject>;
}

/** A resource as it appears in a list (MCP, Resources). */
export interface OwnResource {
  readonly uri: string;
  readonly name: string;
  readonly description?: string;
  readonly mimeType: string;
}

/** The resources that this process itself serves. */
export interface OwnResources<Call> {
  /** URI templates of all resources. (RFC 6570) */
  readonly templates: readonly {
    readonly uriTemplate: string;
    readonly name: string;
    readonly description: string;
    readonly mimeType: string;
  }[];
  /** Lists the resources that the caller may read, the newest first. */
  list(call: Call, cursor: string): Promise<{ resources: OwnResource[]; nextCursor: string }>;
  /**
   * Reads a resource.
   *
   * @returns undefined if the URI has no resource, or the caller may not see the resource
   */
  read(uri: string, call: Call): Promise<JsonObject | undefined>;
}

/** A prompt that this process itself serves. (MCP, Prompts) */
export interface OwnPrompt {
  readonly name: string;
  readonly description: string;
  readonly arguments: readonly {
    readonly name: string;
    readonly description: string;
    readonly required: boolean;
  }[];
  /** Returns the text for the model. All required arguments are present. */
  text(args: Readonly<Record<string, string>>): string;
}

export interface ToolServerOptions<Call> {
  readonly name: string;
  readonly version: string;
  readonly instructions: string;
  readonly tools: readonly OwnTool<Call>[];
  readonly resources: OwnResources<Call>;
  readonly prompts: readonly OwnPrompt[];
  readonly tasks: OwnTasks<Call>;
  /** Converts an exception of a tool to the error content that the model reads. */
  refusalOf(thrown: unknown, call: Call): JsonObject;
  /**
   * Converts an exception to an HTTP response if the client must act before the model, for example present
   * credentials; otherwise returns undefined.
   */
  httpRefusalOf(thrown: unknown, id: unknown, call: Call): Response | undefined;
  /** Identifies the sender of a request by its credentials; empty for a request without credentials. */
  readonly callerOf: (call: Call) => string;
  readonly clock: Clock;
  readonly timers: Timers;
  readonly onError: (error: Error) => void;
  /** Adds capabilities and methods to a new SDK server, before the server answers its request. */
  readonly extend?: (server: Server) => void;
}

export interface ToolServer<Call> {
  answer(request: Request, body: unknown, call: Call): Promise<Response>;
  close(): Promise<void>;
}

/** The key under which the SDK stores the request's context. */
const CALL = "depute.dev/call";

/** A request. `refusal` is the HTTP response that replaces the SDK's response if the tool refuses the call. */
interface Exchange<Call> {
  readonly call: Call;
  refusal?: Response;
  /** The HTTP status of the request's error; absent for status 200. */
  status?: number;
}

/**
 * Creates an MCP server that serves these tools over Streamable HTTP. It supports the current revision and earlier ones,
 * with and without MCP sessions.
 */
export function toolServer<Call>(options: ToolServerOptions<Call>): ToolServer<Call> {
  const { callerOf, clock, timers, onError } = options;
  const handler = createMcpHandler(({ era }) => newServer(options, era), { onerror: onError });
  const sessions = new ToolSessions<Call>({
    clock,
    callerOf,
    create: (session) => newServer(options, "legacy", session),
    callIn: (authInfo) => exchangeOf<Call>(authInfo).call,
  });
  const streams = new TaskStreams(timers, onError);
  return {
    async answer(request, body, call) {
      const exchange: Exchange<Call> = { call };
      const context = {
        ...(body === undefined ? {} : { parsedBody: body }),
        authInfo: { token: "", clientId: "", scopes: [], extra: { [CALL]: exchange } },
      };
      const fetched =
        (await sessions.answer(request, body, call, context)) ?? (await handler.fetch(request, context));
      const answer = withStatus(fetched, exchange.status);
      if (callsPlatform(body)) return held(answer, () => exchange.refusal, timers);
      return listening(options, streams, answer, body, call);
    },
    async close() {
      await handler.close();
      await sessions.close();
      streams.close();
    },
  };
}

/** Creates the SDK server of one request, or of one MCP session. */
function newServer<Call>(options: ToolServerOptions<Call>, era: Era, session?: ToolSession<Call>): Server {
  const { name, version, instructions, onError } = options;
  const tools = new Map(options.tools.map((tool) => [tool.name, tool]));
  // A request of an earlier revision without a session has no level for log messages, so it receives none.
  const logs = era === "modern" || session !== undefined ? { logging: {} } : {};
  const own = { tools: {}, resources: {}, prompts: {}, ...logs };
  const capabilities = mergeCapabilities(own, taskCapability(era));
  const server = new Server({ name, version }, { capabilities, instructions });
  server.onerror = onError;
  serveResources(server, options);
  servePrompts(server, options.prompts);
  serveTasks(server, era, {
    tasks: options.tasks,
    session,
    run: runner(options, "the request on the task failed"),
  });
  server.setRequestHandler("tools/list", () => ({ tools: listed(options.tools, era) }));
  // The SDK's own handler for tool calls does not accept a task as a result.
  server.fallbackRequestHandler = async ({ method, params }, context) => {
    try {
      if (method !== "tools/call") throw new Refusal(METHOD_NOT_FOUND, "Method not found", {});
      const hasSession = session !== undefined;
      const notices = noticesOf(context, name, hasSession, onError);
      return await callTool({ server, era, hasSession, options, tools, notices }, params ?? {}, context);
    } catch (thrown) {
      const status = era === "modern" && thrown instanceof Refusal ? statusOf(thrown.code) : undefined;
      if (status !== undefined) exchangeOf<Call>(context.http?.authInfo).status = status;
      throw thrown;
    }
  };
  options.extend?.(server);
  return server;
}

/** Returns the SDK's answer. If the request listens to tasks, adds the states of these tasks to the answer. */
async function listening<Call>(
  options: ToolServerOptions<Call>,
  streams: TaskStreams,
  answer: Response,
  body: unknown,
  call: Call,
): Promise<Response> {
  const { id = null, method, params } = isObject(body) ? body : {};
  const given = isObject(params) ? params : {};
  try {
    const taskIds = listenedTaskIds(method, given);
    // An answer that is not a stream is the SDK's refusal of the request.
    if (taskIds.length === 0 || !isEventStream(answer)) return answer;
    streams.assertRoom();
    return streams.show(answer, id, await listenedTasks(options.tasks, taskIds, declaredIn(given), call));
  } catch (thrown) {
    await answer.body?.cancel();
    const refused = options.httpRefusalOf(thrown, id, call);
    if (refused !== undefined) return refused;
    const { code, message, data } =
      thrown instanceof Refusal
        ? thrown
        : new Refusal(INTERNAL_ERROR, "the tasks cannot be read", options.refusalOf(thrown, call));
    const status = statusOf(code) ?? 200;
    return Response.json({ jsonrpc: "2.0", id, error: { code, message, data } }, { status });
  }
}

function exchangeOf<Call>(authInfo: AuthInfo | undefined): Exchange<Call> {
  return authInfo?.extra?.[CALL] as Exchange<Call>;
}

/** Returns the tools as a list shows them. Revisions before 2026-07-28 mark the tools that can run as tasks. */
function listed<Call>(tools: readonly OwnTool<Call>[], era: Era): Tool[] {
  return tools.map(({ name, description, inputSchema, isReadOnly, begin }) => ({
    name,
    description,
    inputSchema,
    annotations: { readOnlyHint: isReadOnly },
    ...(begin !== undefined && era === "legacy" && { execution: { taskSupport: "optional" as const } }),
  }));
}

interface ToolCall<Call> {
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
async function callTool<Call>(
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

/** Runs a method with the context (`Call`) of its request. */
type Runner<Call> = <T>(context: ServerContext, method: (call: Call) => Promise<T>) => Promise<T>;

/**
 * Returns the function that runs methods. The function converts a refusal of the platform to the error of the request.
 */
function runner<Call>(options: ToolServerOptions<Call>, message: string): Runner<Call> {
  return async ({ http, mcpReq }, method) => {
    const exchange = exchangeOf<Call>(http?.authInfo);
    try {
      return await method(exchange.call);
    } catch (thrown) {
      if (thrown instanceof Refusal) throw thrown;
      const refused = options.httpRefusalOf(thrown, mcpReq.id, exchange.call);
      if (refused !== undefined) exchange.refusal = refused;
      throw new Refusal(INTERNAL_ERROR, message, options.refusalOf(thrown, exchange.call));
    }
  };
}

function serveResources<Call>(server: Server, options: ToolServerOptions<Call>): void {
  const { resources } = options;
  const run = runner(options, "the resource cannot be read");
  server.setRequestHandler("resources/templates/list", () => ({
    resourceTemplates: [...resources.templates],
  }));
  server.setRequestHandler("resources/list", async ({ params }, context) => {
    const { resources: listed, nextCursor } = await run(context, (call) =>
      resources.list(call, params?.cursor ?? ""),
    );
    return { resources: listed, ...(nextCursor === "" ? {} : { nextCursor }) };
  });
  server.setRequestHandler("resources/read", async ({ params: { uri } }, context) => {
    const document = await run(context, (call) => resources.read(uri, call));
    if (document === undefined)
      throw new Refusal(
        INVALID_PARAMS,
        "the resource does not exist: list the resources to see their addresses",
        { uri },
      );
    return { contents: [{ uri, mimeType: JSON_TYPE, text: JSON.stringify(document) }] };
  });
}

function servePrompts(server: Server, prompts: readonly OwnPrompt[]): void {
  const byName = new Map(prompts.map((prompt) => [prompt.name, prompt]));
  server.setRequestHandler("prompts/list", () => ({
    prompts: prompts.map(({ name, description, arguments: args }) => ({
      name,
      description,
      arguments: [...args],
    })),
  }));
  server.setRequestHandler("prompts/get", ({ params }) => {
    const prompt = byName.get(params.name);
    if (prompt === undefined)
      throw new Refusal(INVALID_PARAMS, "the prompt does not exist: list the prompts to see their names", {});
    const args = params.arguments ?? {};
    const missing = prompt.arguments.find(({ name, required }) => required && args[name] === undefined);
    if (missing !== undefined)
      throw new Refusal(INVALID_PARAMS, `the argument ${missing.name} is required: add it`, {
        argument: missing.name,
      });
    const content = { type: "text" as const, text: prompt.text(args) };
    return { description: prompt.description, messages: [{ role: "user" as const, content }] };
  });
}

/** Whether the request calls the platform, so that the platform can refuse its credentials. */
function callsPlatform(body: unknown): boolean {
  const method = isObject(body) ? body.method : undefined;
  return typeof method === "string" && (method === "tools/call" || method.startsWith("tasks/"));
}
