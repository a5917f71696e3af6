import { createServer, type Server as HttpServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { type AgentCard, type Message, type Part, Role, type Task, TaskState } from "@a2a-js/sdk";
import {
  AgentEvent,
  type AgentExecutor,
  DefaultRequestHandler,
  type ExecutionEventBus,
  InMemoryTaskStore,
  type RequestContext,
} from "@a2a-js/sdk/server";
import { jsonRpcHandler, restHandler } from "@a2a-js/sdk/server/express";
import { A2AService, grpcService, UserBuilder } from "@a2a-js/sdk/server/grpc";
import { Server as GrpcServer, ServerCredentials } from "@grpc/grpc-js";
import type { Binding } from "./scene.ts";

/** What the agent does with a message, by the message's first line. For any other first line, it returns the text. */
export const BEHAVIOUR = {
  report: "reports progress, and sends an artifact in two pieces",
  files: "returns two artifacts",
  ask: "asks for a colour, and returns the answer",
  authorize: "asks for an authorization, and returns the answer",
  fail: "fails",
  reject: "rejects the work",
  wait: "works until it is cancelled",
  reply: "answers with a message instead of a task",
} as const;

/**
 * An A2A agent outside the platform: the official SDK's server with its store in memory. The agent shares no
 * code with the platform.
 */
export interface Elsewhere {
  readonly card: AgentCard;
  /** The messages that the agent has received, in order. */
  readonly messages: Message[];
  /** The ids of the tasks that the agent has been asked to cancel. */
  readonly cancelled: string[];
  /** Completes the tasks that wait. */
  finish(): void;
  /** Ends all open HTTP connections, as a proxy between the agent and the platform would. */
  drop(): void;
  close(): Promise<void>;
}

/** @param streaming whether the card declares streams */
export async function startElsewhere(binding: Binding, streaming = true): Promise<Elsewhere> {
  const messages: Message[] = [];
  const cancelled: string[] = [];
  const card = cardOf(binding, streaming);
  const waiting = new Map<string, (state: TaskState) => void>();
  const executor = executorOf(messages, cancelled, waiting);
  const requestHandler = new DefaultRequestHandler(card, new InMemoryTaskStore(), executor);
  const served =
    binding === "GRPC" ? await serveGrpc(requestHandler) : await serveHttp(binding, requestHandler);
  const [first] = card.supportedInterfaces;
  if (first !== undefined) first.url = served.url;
  const finish = () => {
    for (const end of waiting.values()) end(TaskState.TASK_STATE_COMPLETED);
  };
  return { card, messages, cancelled, finish, drop: served.drop, close: served.close };
}

async function serveGrpc(requestHandler: DefaultRequestHandler) {
  const server = new GrpcServer();
  server.addService(A2AService, grpcService({ requestHandler, userBuilder: UserBuilder.noAuthentication }));
  const port = await new Promise<number>((resolve, reject) => {
    server.bindAsync("127.0.0.1:0", ServerCredentials.createInsecure(), (error, bound) =>
      error === null ? resolve(bound) : reject(error),
    );
  });
  return {
    url: `127.0.0.1:${port}`,
    // A gRPC server cannot close its connections and keep running, so `drop` does nothing.
    drop: () => {},
    close: async () => server.forceShutdown(),
  };
}

async function serveHttp(binding: Binding, requestHandler: DefaultRequestHandler) {
  const { default: express } = await import("express");
  const options = { requestHandler, userBuilder: UserBuilder.noAuthentication };
  const app = express();
  app.use(binding === "JSONRPC" ? jsonRpcHandler(options) : restHandler(options));
  const server: HttpServer = createServer(app as RequestListener);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    drop: () => server.closeAllConnections(),
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

function cardOf(binding: Binding, streaming: boolean): AgentCard {
  return {
    name: "elsewhere",
    description: "an agent that another organization runs",
    supportedInterfaces: [{ url: "", protocolBinding: binding, tenant: "", protocolVersion: "1.0" }],
    provider: undefined,
    version: "1",
    capabilities: { streaming, extensions: [] },
    securitySchemes: {},
    securityRequirements: [],
    defaultInputModes: ["text/plain"],
    defaultOutputModes: ["text/plain"],
    skills: [],
    signatures: [],
  };
}

function executorOf(
  messages: Message[],
  cancelled: string[],
  waiting: Map<string, (state: TaskState) => void>,
): AgentExecutor {
  return {
    async execute(context, bus) {
      const { userMessage, taskId } = context;
      messages.push(userMessage);
      const run = new Run(context, bus);
      const text = textOf(userMessage);
      if (context.task !== undefined) {
        bus.publish(AgentEvent.task(context.task));
        return run.complete(userMessage.parts);
      }
      switch (text.split("\n", 1)[0]) {
        case "reply" satisfies keyof typeof BEHAVIOUR:
          bus.publish(AgentEvent.message(run.message("a reply")));
          return bus.finished();
        case "report" satisfies keyof typeof BEHAVIOUR:
          run.begin();
          run.status(TaskState.TASK_STATE_WORKING, "half way");
          run.artifact([part("one ")], { append: false, lastChunk: false });
          run.artifact([part("two")], { append: true, lastChunk: true });
          return run.end(TaskState.TASK_STATE_COMPLETED);
        case "files" satisfies keyof typeof BEHAVIOUR:
          run.begin();
          run.artifact([part("one")], { append: false, lastChunk: true });
          run.artifact([part("two")], { append: false, lastChunk: true }, "b");
          return run.end(TaskState.TASK_STATE_COMPLETED);
        case "ask" satisfies keyof typeof BEHAVIOUR:
          run.begin();
          return run.end(TaskState.TASK_STATE_INPUT_REQUIRED, "which colour?");
        case "authorize" satisfies keyof typeof BEHAVIOUR:
          run.begin();
          return run.end(TaskState.TASK_STATE_AUTH_REQUIRED, "log in first");
        case "fail" satisfies keyof typeof BEHAVIOUR:
          run.begin();
          return run.end(TaskState.TASK_STATE_FAILED, "there was no luck");
        case "reject" satisfies keyof typeof BEHAVIOUR:
          run.begin();
          return run.end(TaskState.TASK_STATE_REJECTED, "not my work");
        case "wait" satisfies keyof typeof BEHAVIOUR:
          run.begin();
          run.status(TaskState.TASK_STATE_WORKING, "waiting");
          return run.end(await new Promise<TaskState>((resolve) => waiting.set(taskId, resolve)));
        default:
          run.begin();
          return run.complete(userMessage.parts);
      }
    },
    async cancelTask(taskId) {
      cancelled.push(taskId);
      waiting.get(taskId)?.(TaskState.TASK_STATE_CANCELED);
    },
  };
}

/** One run of the agent on one task. */
class Run {
  readonly #context: RequestContext;
  readonly #bus: ExecutionEventBus;

  constructor(context: RequestContext, bus: ExecutionEventBus) {
    this.#context = context;
    this.#bus = bus;
  }

  begin(): void {
    const { taskId, contextId, userMessage } = this.#context;
    const task: Task = {
      id: taskId,
      contextId,
      status: { state: TaskState.TASK_STATE_SUBMITTED, message: undefined, timestamp: now() },
      artifacts: [],
      history: [userMessage],
      metadata: undefined,
    };
    this.#bus.publish(AgentEvent.task(task));
  }

  status(state: TaskState, text = ""): void {
    const { taskId, contextId } = this.#context;
    const status = { state, message: text === "" ? undefined : this.message(text), timestamp: now() };
    this.#bus.publish(AgentEvent.statusUpdate({ taskId, contextId, status, metadata: undefined }));
  }

  artifact(parts: Part[], piece: { append: boolean; lastChunk: boolean }, artifactId = "a"): void {
    const { taskId, contextId } = this.#context;
    const artifact = {
      artifactId,
      name: "",
      description: "",
      parts,
      metadata: undefined,
      extensions: [],
    };
    this.#bus.publish(
      AgentEvent.artifactUpdate({ taskId, contextId, artifact, ...piece, metadata: undefined }),
    );
  }

  complete(parts: Part[]): void {
    this.artifact(parts, { append: false, lastChunk: true });
    this.end(TaskState.TASK_STATE_COMPLETED);
  }

  end(state: TaskState, text = ""): void {
    this.status(state, text);
    this.#bus.finished();
  }

  message(text: string): Message {
    const { taskId, contextId } = this.#context;
    return {
      messageId: crypto.randomUUID(),
      taskId,
      contextId,
      role: Role.ROLE_AGENT,
      parts: [part(text)],
      metadata: undefined,
      extensions: [],
      referenceTaskIds: [],
    };
  }
}

function part(text: string): Part {
  return { content: { $case: "text", value: text }, metadata: undefined, filename: "", mediaType: "" };
}

function textOf({ parts }: Message): string {
  return parts.flatMap(({ content }) => (content?.$case === "text" ? [content.value] : [])).join("\n");
}

function now(): string {
  return new Date().toISOString();
}
