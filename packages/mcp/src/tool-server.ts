import { isObject } from "@depute/core";
import {
  createMcpHandler,
  mergeCapabilities,
  Server,
  type ServerContext,
} from "@modelcontextprotocol/server";
import { noticesOf } from "./call-notices.ts";
import { statusOf, withStatus } from "./downstream.ts";
import { held } from "./held-answer.ts";
import { listenedTasks, serveTasks, taskCapability } from "./own-tasks.ts";
import { declaredIn } from "./rules/client-capabilities.ts";
import { listenedTaskIds } from "./rules/listened.ts";
import { INTERNAL_ERROR, INVALID_PARAMS, METHOD_NOT_FOUND, Refusal } from "./rules/refusal.ts";
import type { Era } from "./rules/task-form.ts";
import { isEventStream, TaskStreams } from "./task-streams.ts";
import { callTool, listed } from "./tool-calls.ts";
import { attached, type Exchange, exchangeOf } from "./tool-exchange.ts";
import type { OwnPrompt, ToolServerOptions } from "./tool-server-options.ts";
import { type ToolSession, ToolSessions } from "./tool-sessions.ts";

const JSON_TYPE = "application/json";

export interface ToolServer<Call> {
  answer(request: Request, body: unknown, call: Call): Promise<Response>;
  close(): Promise<void>;
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
        ...attached(exchange),
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
