import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { Json } from "../gateway/platform.ts";

/** The id of the extension for tasks of revision 2026-07-28. */
export const EXTENSION = "io.modelcontextprotocol/tasks";
const CAPABILITIES = "io.modelcontextprotocol/clientCapabilities";

/** A task of the test server. */
interface Task {
  status: string;
  result?: Json;
  readonly arguments: Json;
  readonly answers: Json;
}

/** An MCP server without an SDK, whose tools run as tasks. */
export interface TaskServer {
  readonly url: string;
  /** All requests that reached the server. */
  readonly received: Json[];
  readonly tasks: ReadonlyMap<string, Task>;
  /** Ends a task with the result of its tool. */
  finish(taskId: string): void;
  /** The number of streams that listen to a task. */
  listeners(taskId: string): number;
  /** Ends the streams that listen to a task. */
  endStreams(taskId: string): void;
  close(): void;
}

const tool = (name: string, more: Json = {}) => ({ name, inputSchema: { type: "object" }, ...more });
const times = { createdAt: "2026-11-01T00:00:00Z", lastUpdatedAt: "2026-11-01T00:00:01Z" };

async function bodyOf(request: IncomingMessage): Promise<Json> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return chunks.length === 0 ? undefined : JSON.parse(Buffer.concat(chunks).toString());
}

async function listen(
  answer: (request: IncomingMessage, body: Json, response: ServerResponse) => unknown,
  state: Omit<TaskServer, "url" | "close">,
): Promise<TaskServer> {
  const http = createServer(async (request, response) => answer(request, await bodyOf(request), response));
  await new Promise<void>((resolve) => http.listen(0, "127.0.0.1", resolve));
  return {
    ...state,
    url: `http://127.0.0.1:${(http.address() as AddressInfo).port}/`,
    close() {
      http.closeAllConnections();
      http.close();
    },
  };
}

function states() {
  const received: Json[] = [];
  const tasks = new Map<string, Task>();
  const begin = (args: Json) => {
    const taskId = `upstream-${crypto.randomUUID()}`;
    tasks.set(taskId, { status: "working", arguments: args, answers: {} });
    return taskId;
  };
  const finish = (taskId: string) => {
    const task = tasks.get(taskId) as Task;
    task.status = "completed";
    task.result = { content: [{ type: "text", text: JSON.stringify([task.arguments, task.answers]) }] };
  };
  return { received, tasks, begin, finish };
}

/** Starts a server of 2026-07-28. The tool `ask` asks for an answer; `plain` runs at once; `rogue` ignores the client. */
export function modernServer(): Promise<TaskServer> {
  const { received, tasks, begin, finish } = states();
  /** The streams that listen to each task, with the ids of their requests. */
  const listeners = new Map<string, { id: unknown; stream: ServerResponse }[]>();
  const shown = (taskId: string) => ({ taskId, status: tasks.get(taskId)?.status, ...times, ttlMs: 60_000 });
  const methods: Record<string, (params: Json) => Json> = {
    "server/discover": () => ({
      supportedVersions: ["2026-07-28"],
      capabilities: { tools: {}, extensions: { [EXTENSION]: {} } },
      ttlMs: 0,
      cacheScope: "private",
    }),
    "tools/list": () => ({
      tools: ["slow", "ask", "plain", "rogue", "dear"].map((name) => tool(name)),
      ttlMs: 0,
      cacheScope: "private",
    }),
    "tools/call": ({ name, arguments: args, _meta }) => {
      const takesTasks = _meta[CAPABILITIES].extensions?.[EXTENSION] !== undefined;
      if (name === "dear" && !takesTasks) throw new Error("the tool runs only as a task");
      if (name === "plain" || (!takesTasks && name !== "rogue"))
        return { content: [{ type: "text", text: "at once" }], _meta: { cost: 1 } };
      const taskId = begin(args);
      if (name === "ask") (tasks.get(taskId) as Task).status = "input_required";
      return { resultType: "task", ...shown(taskId), pollIntervalMs: 50 };
    },
    "tasks/get": ({ taskId }) => {
      const { status, result } = tasks.get(taskId) as Task;
      return {
        ...shown(taskId),
        ...(result && { result }),
        ...(status === "input_required" && {
          inputRequests: {
            name: {
              method: "elicitation/create",
              params: { mode: "form", message: "name?", requestedSchema: { type: "object", properties: {} } },
            },
          },
        }),
      };
    },
    "tasks/update": ({ taskId, inputResponses }) => {
      Object.assign((tasks.get(taskId) as Task).answers, inputResponses);
      finish(taskId);
      return {};
    },
    "tasks/cancel": ({ taskId }) => {
      (tasks.get(taskId) as Task).status = "cancelled";
      return {};
    },
  };
  const event = (stream: ServerResponse, method: string, params: Json, id: unknown) => {
    const stamped = { ...params, _meta: { "io.modelcontextprotocol/subscriptionId": id } };
    stream.write(`data: ${JSON.stringify({ jsonrpc: "2.0", method, params: stamped })}\n\n`);
  };
  const announce = (taskId: string) => {
    for (const { id, stream } of listeners.get(taskId) ?? [])
      event(stream, "notifications/tasks", methods["tasks/get"]?.({ taskId }), id);
  };
  const openStream = ({ id, params }: Json, stream: ServerResponse) => {
    const taskIds = params.notifications.taskIds.filter((taskId: string) => tasks.has(taskId));
    stream.writeHead(200, { "content-type": "text/event-stream" });
    event(stream, "notifications/subscriptions/acknowledged", { notifications: { taskIds } }, id);
    for (const taskId of taskIds) {
      listeners.set(taskId, [...(listeners.get(taskId) ?? []), { id, stream }]);
      stream.once("close", () =>
        listeners.set(
          taskId,
          (listeners.get(taskId) ?? []).filter((one) => one.stream !== stream),
        ),
      );
      announce(taskId);
    }
  };
  return listen(
    (_, body, response) => {
      received.push(body);
      if (body.method === "subscriptions/listen") return openStream(body, response);
      const { taskId } = body.params;
      const isKnown = taskId === undefined || tasks.has(taskId);
      const result = () => {
        try {
          return { result: { resultType: "complete", ...methods[body.method]?.(body.params) } };
        } catch (thrown) {
          const data = { requiredCapabilities: { extensions: { [EXTENSION]: {} } } };
          return { error: { code: -32021, message: (thrown as Error).message, data } };
        }
      };
      const answer = isKnown ? result() : { error: { code: -32602, message: `unknown task ${taskId}` } };
      response.writeHead(200, { "content-type": "application/json" });
      response.end(JSON.stringify({ jsonrpc: "2.0", id: body.id, ...answer }));
    },
    {
      received,
      tasks,
      finish(taskId) {
        finish(taskId);
        announce(taskId);
      },
      listeners: (taskId) => listeners.get(taskId)?.length ?? 0,
      endStreams(taskId) {
        for (const { stream } of listeners.get(taskId) ?? []) stream.end();
      },
    },
  );
}

/**
 * Starts a server of 2025-11-25 with MCP sessions. Each MCP session knows only its own tasks, so a client must
 * always reach the one that began its task. `tasks/list` lists the tasks of all MCP sessions. The tool `ask` asks
 * for a name during `tasks/result`.
 */
export async function earlierServer(): Promise<TaskServer> {
  const { received, tasks, begin, finish } = states();
  const owners = new Map<string, unknown>();
  const streams = new Map<unknown, ServerResponse>();
  const progressTokens = new Map<string, unknown>();
  const answered = new Map<string, (result: Json) => void>();
  const ended = new Map<string, () => void>();
  const shown = (taskId: string) => ({ taskId, status: tasks.get(taskId)?.status, ...times, ttl: null });
  const event = (stream: ServerResponse | undefined, message: Json) =>
    stream?.write(`data: ${JSON.stringify({ jsonrpc: "2.0", ...message })}\n\n`);
  const end = (taskId: string) => {
    const progressToken = progressTokens.get(taskId);
    const told = { progressToken, progress: 1, total: 2, message: "half" };
    if (progressToken !== undefined)
      event(streams.get(owners.get(taskId)), { method: "notifications/progress", params: told });
    finish(taskId);
    const params = shown(taskId);
    event(streams.get(owners.get(taskId)), { method: "notifications/tasks/status", params });
    ended.get(taskId)?.();
  };
  const results = async (taskId: string, stream: ServerResponse) => {
    const task = tasks.get(taskId) as Task;
    const related = { _meta: { "io.modelcontextprotocol/related-task": { taskId } } };
    if (task.status === "input_required") {
      const id = crypto.randomUUID();
      const requestedSchema = { type: "object", properties: { name: { type: "string" } } };
      const params = { ...related, message: "name?", requestedSchema };
      event(stream, { id, method: "elicitation/create", params });
      task.answers.name = await new Promise((resolve) => answered.set(id, resolve));
      finish(taskId);
    }
    if (task.status === "working") await new Promise<void>((resolve) => ended.set(taskId, resolve));
    return { ...task.result, ...related };
  };
  const call = ({ name, arguments: args, task, _meta }: Json, session: unknown) => {
    if (task === undefined) {
      if (name === "required") throw new Error("the tool requires a task");
      return { content: [{ type: "text", text: "at once" }] };
    }
    const taskId = begin(args);
    owners.set(taskId, session);
    progressTokens.set(taskId, _meta?.progressToken);
    if (name === "ask") (tasks.get(taskId) as Task).status = "input_required";
    return { task: shown(taskId) };
  };
  const methods: Record<string, (params: Json, session: unknown, stream: ServerResponse) => Json> = {
    initialize: ({ protocolVersion }) => ({
      protocolVersion,
      capabilities: { tools: {}, tasks: { list: {}, cancel: {}, requests: { tools: { call: {} } } } },
      serverInfo: { name: "earlier", version: "1" },
    }),
    "tools/list": () => ({
      tools: [
        tool("slow", { execution: { taskSupport: "optional" } }),
        tool("ask", { execution: { taskSupport: "optional" } }),
        tool("required", { execution: { taskSupport: "required" } }),
      ],
    }),
    "tools/call": call,
    "tasks/get": ({ taskId }) => shown(taskId),
    "tasks/list": () => ({ tasks: [...tasks.keys()].map(shown) }),
    "tasks/cancel": ({ taskId }) => {
      const task = tasks.get(taskId) as Task;
      if (task.status !== "working") throw new Error(`the task ${taskId} has ended`);
      task.status = "cancelled";
      return shown(taskId);
    },
    "tasks/result": ({ taskId }, _, stream) => results(taskId, stream),
  };
  const answer = async ({ method, params = {} }: Json, session: unknown, stream: ServerResponse) => {
    try {
      const { taskId } = params;
      if (taskId !== undefined && owners.get(taskId) !== session) throw new Error(`unknown task ${taskId}`);
      return { result: await methods[method]?.(params, session, stream) };
    } catch (thrown) {
      return { error: { code: -32602, message: (thrown as Error).message } };
    }
  };
  const server = await listen(
    async (request, body, response) => {
      const session = request.headers["mcp-session-id"];
      if (request.method !== "POST") {
        response.writeHead(200, { "content-type": "text/event-stream" }).flushHeaders();
        if (request.method === "GET") streams.set(session, response);
        else response.end();
        return;
      }
      received.push(body);
      if (body.method === undefined) answered.get(body.id)?.(body.result);
      if (body.method === undefined || body.id === undefined) return response.writeHead(202).end();
      response.writeHead(200, {
        "content-type": "text/event-stream",
        ...(body.method === "initialize" && { "mcp-session-id": crypto.randomUUID() }),
      });
      event(response, { id: body.id, ...(await answer(body, session, response)) });
      return response.end();
    },
    { received, tasks, finish: end, listeners: () => 0, endStreams: () => {} },
  );
  return server;
}
