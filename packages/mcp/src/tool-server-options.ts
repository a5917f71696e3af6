import type { JsonObject } from "@bufbuild/protobuf";
import type { Clock, Timers } from "@depute/core";
import type { Server, ServerContext, Tool } from "@modelcontextprotocol/server";
import type { CallNotices } from "./call-notices.ts";
import type { OwnTasks } from "./own-tasks.ts";
import type { McpTask } from "./rules/task-form.ts";

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
  /** Returns a text that is the same for all requests with the same credentials; empty for a request without credentials. */
  readonly callerOf: (call: Call) => string;
  readonly clock: Clock;
  readonly timers: Timers;
  readonly onError: (error: Error) => void;
  /** Adds capabilities and methods to a new SDK server, before the server answers its request. */
  readonly extend?: (server: Server) => void;
}
