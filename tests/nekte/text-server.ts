import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { createServer as createHttp2Server, createSecureServer, type Http2Session } from "node:http2";
import { createServer as createHttpsServer } from "node:https";
import type { AddressInfo } from "node:net";
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { connectNodeAdapter } from "@connectrpc/connect-node";
import { DelegateEventSchema, Nekte } from "@depute/contracts/nekte/v1/nekte_pb";
import type { Certified } from "./certificate.ts";

/** JSON whose members tests read without declaring types. */
// biome-ignore lint/suspicious/noExplicitAny: looked at member by member
type Json = any;

/** Sends a task's events in the form of the NEKTE specification. A terminal event ends the task. */
export interface Teller {
  progress(processed: number, total: number, message?: string): void;
  partial(out: Json): void;
  complete(out: Json): void;
  fail(code: number, message: string): void;
  /** Suspends the task. Resolves when the task is resumed. */
  suspend(checkpointAvailable: boolean): Promise<void>;
  /** Sends an event unchanged. */
  raw(event: string, data: Json): void;
  /** Breaks all streams without a terminal event. */
  breakOff(): void;
  readonly signal: AbortSignal;
}

export type Script = (params: Json, tell: Teller) => Promise<void> | void;

interface Entry {
  readonly id: string;
  status: string;
  readonly log: { event: string; data: Json }[];
  readonly readers: Set<{ wake: () => void; broken: boolean }>;
  readonly abort: AbortController;
  resumed: () => void;
  isOver: boolean;
}

/** An error of the agent, with the members of a JSON-RPC error. */
export class Refused extends Error {
  readonly code: number;
  readonly data: Json;
  constructor(code: number, message: string, data?: Json) {
    super(message);
    this.code = code;
    this.data = data;
  }
}

export interface AgentOptions {
  /**
   * Whether the agent numbers its events. If so, the agent answers a repeated delegation with the remaining
   * events.
   */
  readonly numbered?: boolean;
}

/**
 * A NEKTE agent for these tests, written only from the specification. The agent shares no code with the
 * platform.
 */
export class TextAgent {
  /** The received calls in order, each with its method and parameters. */
  readonly calls: { method: string; params: Json }[] = [];
  readonly tasks = new Map<string, Entry>();
  script: Script = (_, tell) => tell.complete({ minimal: "done", compact: { done: true } });
  invoke: (params: Json) => Json = (params) => ({ out: { got: params.in }, meta: { ms: 1, tokens_used: 3 } });
  readonly #numbered: boolean;

  constructor({ numbered = false }: AgentOptions = {}) {
    this.#numbered = numbered;
  }

  callsOf(method: string): Json[] {
    return this.calls.filter((call) => call.method === method).map(({ params }) => params);
  }

  /** Answers every method except delegations, which are streams. */
  answer(method: string, params: Json): Json {
    this.calls.push({ method, params });
    switch (method) {
      case "nekte.invoke":
        return this.invoke(params);
      case "nekte.context":
        return { id: params.envelope.id, status: "stored" };
      case "nekte.task.status": {
        const { id, status } = this.#find(params);
        const at = "2026-01-15T10:30:00Z";
        return { task_id: id, status, checkpoint_available: false, created_at: at, updated_at: at };
      }
      case "nekte.task.cancel": {
        const entry = this.#find(params);
        const { status } = entry;
        if (entry.isOver) throw new Refused(-32010, "TASK_NOT_CANCELLABLE");
        this.#end(entry, "cancelled", "cancelled", {
          task_id: entry.id,
          reason: params.reason,
          previous_status: status,
        });
        entry.abort.abort();
        return { task_id: entry.id, status: "cancelled", previous_status: status };
      }
      case "nekte.task.resume": {
        const entry = this.#find(params);
        if (entry.status !== "suspended") throw new Refused(-32011, "TASK_NOT_RESUMABLE");
        entry.status = "running";
        this.#tell(entry, "resumed", { task_id: entry.id, from_checkpoint: true });
        entry.resumed();
        return { task_id: entry.id, status: "running", previous_status: "suspended" };
      }
      default:
        throw new Refused(-32601, "Method not found");
    }
  }

  /** Yields the events of a new task, or of an existing task to which a client attaches again. */
  delegate(params: Json, after: number): AsyncGenerator<{ event: string; data: Json; id?: number }> {
    this.calls.push({ method: "nekte.delegate", params });
    const knownTask = this.tasks.get(params.task.id);
    if (knownTask !== undefined && !this.#numbered) throw new Refused(-32602, "the id is taken");
    const entry = knownTask ?? this.#begin(params);
    return this.#read(entry, knownTask === undefined ? 0 : after);
  }

  #begin(params: Json): Entry {
    const entry: Entry = {
      id: params.task.id,
      status: "running",
      log: [],
      readers: new Set(),
      abort: new AbortController(),
      resumed: () => {},
      isOver: false,
    };
    this.tasks.set(entry.id, entry);
    const task_id = entry.id;
    const tell: Teller = {
      signal: entry.abort.signal,
      progress: (processed, total, message) =>
        this.#tell(entry, "progress", { processed, total, ...(message === undefined ? {} : { message }) }),
      partial: (out) => this.#tell(entry, "partial", { out, resolved_level: "compact" }),
      complete: (out) => this.#end(entry, "completed", "complete", { task_id, status: "completed", out }),
      fail: (code, message) => this.#end(entry, "failed", "error", { task_id, code, message }),
      suspend: (checkpoint_available) => {
        entry.status = "suspended";
        const resumed = new Promise<void>((resolve) => {
          entry.resumed = resolve;
        });
        this.#tell(entry, "suspended", { task_id, checkpoint_available });
        return resumed;
      },
      raw: (event, data) => this.#tell(entry, event, data),
      breakOff: () => {
        for (const reader of entry.readers) {
          reader.broken = true;
          reader.wake();
        }
      },
    };
    void (async () => this.script(params, tell))();
    return entry;
  }

  async *#read(entry: Entry, after: number) {
    const reader = { wake: () => {}, broken: false };
    entry.readers.add(reader);
    try {
      for (let at = after; ; ) {
        if (reader.broken) return;
        const told = entry.log[at];
        if (told !== undefined) {
          at++;
          yield { ...told, ...(this.#numbered ? { id: at } : {}) };
          continue;
        }
        if (entry.isOver) return;
        await new Promise<void>((resolve) => {
          reader.wake = resolve;
        });
      }
    } finally {
      entry.readers.delete(reader);
    }
  }

  #find({ task_id }: Json): Entry {
    const entry = this.tasks.get(task_id);
    if (entry === undefined) throw new Refused(-32009, "TASK_NOT_FOUND");
    return entry;
  }

  #end(entry: Entry, status: string, event: string, data: Json): void {
    if (entry.isOver) return;
    entry.status = status;
    entry.isOver = true;
    this.#tell(entry, event, data);
  }

  #tell(entry: Entry, event: string, data: Json): void {
    entry.log.push({ event, data });
    for (const { wake } of entry.readers) wake();
  }
}

/** A running server of a test's agent. */
export interface TextServer {
  readonly endpoint: string;
  readonly port: number;
  /** Runs before the agent sees a request; returns true if the function has answered the request itself. */
  intercept: (request: IncomingMessage, response: ServerResponse, body: string) => boolean;
  stop(): Promise<void>;
}

/** Serves the agent over JSON-RPC and server-sent events. With a certificate it uses TLS. */
export async function serveHttp(agent: TextAgent, port = 0, certified?: Certified): Promise<TextServer> {
  const listener = (request: IncomingMessage, response: ServerResponse) => {
    void (async () => {
      let body = "";
      for await (const chunk of request) body += chunk;
      if (handle.intercept(request, response, body)) return;
      const { id, method, params } = JSON.parse(body);
      const fail = (thrown: unknown) => {
        const { code = -32000, message, data } = thrown as Refused;
        response.setHeader("content-type", "application/json");
        response.end(JSON.stringify({ jsonrpc: "2.0", id, error: { code, message, data } }));
      };
      try {
        if (method !== "nekte.delegate") {
          const result = agent.answer(method, params);
          response.setHeader("content-type", "application/json");
          response.end(JSON.stringify({ jsonrpc: "2.0", id, result }));
          return;
        }
        const events = agent.delegate(params, Number(request.headers["last-event-id"] ?? 0));
        response.writeHead(200, { "content-type": "text/event-stream" });
        response.flushHeaders();
        for await (const told of events) {
          const number = told.id === undefined ? "" : `id: ${told.id}\n`;
          response.write(`${number}event: ${told.event}\ndata: ${JSON.stringify(told.data)}\n\n`);
        }
        response.end();
      } catch (thrown) {
        fail(thrown);
      }
    })().catch(() => response.destroy());
  };
  const server = certified === undefined ? createServer(listener) : createHttpsServer(certified, listener);
  server.listen(port, "127.0.0.1");
  await once(server, "listening");
  const bound = (server.address() as AddressInfo).port;
  const handle: TextServer = {
    endpoint: `${certified === undefined ? "http" : "https"}://127.0.0.1:${bound}/`,
    port: bound,
    intercept: () => false,
    async stop() {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
  return handle;
}

/** Serves the agent as the published gRPC service. With a certificate it uses TLS. */
export async function serveGrpc(agent: TextAgent, certified?: Certified): Promise<TextServer> {
  const bytes = (json: Json) => new TextEncoder().encode(JSON.stringify(json));
  const parse = (data: Uint8Array) => (data.length === 0 ? null : JSON.parse(new TextDecoder().decode(data)));
  const answer = (method: string, params: Json) => {
    try {
      return agent.answer(method, params);
    } catch (thrown) {
      const { code, message, data } = thrown as Refused;
      if (data?.current_hash === undefined) throw refused(thrown);
      // An outdated hash is no gRPC error: InvokeResponse has a member for it.
      return { error: { code, message, currentHash: data.current_hash } };
    }
  };
  const adapter = connectNodeAdapter({
    routes: ({ service }) =>
      service(Nekte, {
        invoke(request) {
          const { cap, h, input } = request;
          const { out, error, ...more } = answer("nekte.invoke", { cap, h, in: parse(input) });
          if (error !== undefined) return { error };
          return { output: bytes(out), resolvedLevel: more.resolved_level, meta: { tokensUsed: 3 } };
        },
        async *delegate({ task, context }, { requestHeader }) {
          const params = {
            task: { id: task?.id, desc: task?.desc, timeout_ms: task?.timeoutMs },
            ...(context && {
              context: { id: context.id, data: parse(context.data), permissions: context.permissions },
            }),
          };
          let events: ReturnType<TextAgent["delegate"]>;
          try {
            events = agent.delegate(params, Number(requestHeader.get("last-event-id") ?? 0));
          } catch (thrown) {
            throw refused(thrown);
          }
          for await (const { event, data, id } of events) {
            yield create(DelegateEventSchema, {
              ...toMessage(event, data, bytes),
              ...(id === undefined ? {} : { sequence: BigInt(id) }),
            });
          }
        },
        context: ({ action, envelope }) => {
          const data = parse(envelope?.data ?? new Uint8Array());
          return answer("nekte.context", { action, envelope: { id: envelope?.id, data } });
        },
        taskCancel: ({ taskId, reason }) =>
          lifecycle(answer("nekte.task.cancel", { task_id: taskId, reason })),
        taskResume: ({ taskId }) => lifecycle(answer("nekte.task.resume", { task_id: taskId })),
        taskStatus: ({ taskId }) => lifecycle(answer("nekte.task.status", { task_id: taskId })),
      }),
  });
  const server =
    certified === undefined ? createHttp2Server(adapter) : createSecureServer(certified, adapter);
  const sessions = new Set<Http2Session>();
  server.on("session", (session) => {
    sessions.add(session);
    session.on("close", () => sessions.delete(session));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  return {
    endpoint: `${certified === undefined ? "grpc" : "grpcs"}://127.0.0.1:${port}`,
    port,
    intercept: () => false,
    async stop() {
      for (const session of sessions) session.destroy();
      server.close();
      await once(server, "close");
    },
  };
}

/** Converts the agent's error to the gRPC status that the published server uses. */
function refused(thrown: unknown): ConnectError {
  const { code, message } = thrown as Refused;
  if (code === -32009) return new ConnectError(message, Code.NotFound);
  if (code === -32010 || code === -32011 || code === -32602)
    return new ConnectError(message, Code.FailedPrecondition);
  return new ConnectError(message, Code.Internal);
}

function lifecycle({ task_id: taskId, previous_status: previousStatus = "", status }: Json) {
  return { taskId, status, previousStatus };
}

function toMessage(
  event: string,
  data: Json,
  bytes: (json: Json) => Uint8Array<ArrayBuffer>,
): MessageInitShape<typeof DelegateEventSchema> {
  const { task_id: taskId } = data;
  switch (event) {
    case "progress":
      return { event: { case: "progress", value: data } };
    case "partial":
      return {
        event: { case: "partial", value: { output: bytes(data.out), resolvedLevel: data.resolved_level } },
      };
    case "complete": {
      const { minimal, compact, full } = data.out;
      const output = {
        ...(minimal === undefined ? {} : { minimal }),
        ...(compact === undefined ? {} : { compact: bytes(compact) }),
        ...(full === undefined ? {} : { full: bytes(full) }),
      };
      return { event: { case: "complete", value: { taskId, output } } };
    }
    case "error":
      return { event: { case: "error", value: { taskId, code: data.code, message: data.message } } };
    case "cancelled": {
      const value = {
        taskId,
        previousStatus: data.previous_status,
        ...(data.reason && { reason: data.reason }),
      };
      return { event: { case: "cancelled", value } };
    }
    case "suspended":
      return {
        event: { case: "suspended", value: { taskId, checkpointAvailable: data.checkpoint_available } },
      };
    case "resumed":
      return { event: { case: "resumed", value: { taskId, fromCheckpoint: data.from_checkpoint } } };
    default:
      return { event: { case: "statusChange", value: { taskId, fromStatus: data.from, toStatus: data.to } } };
  }
}
