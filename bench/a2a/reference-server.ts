import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { type Part, type Task, TaskState } from "@a2a-js/sdk";
import { AgentEvent, type AgentExecutor, DefaultRequestHandler, InMemoryTaskStore } from "@a2a-js/sdk/server";
import { jsonRpcHandler } from "@a2a-js/sdk/server/express";
import { A2AService, grpcService, UserBuilder } from "@a2a-js/sdk/server/grpc";
import { Server, ServerCredentials } from "@grpc/grpc-js";
import express from "express";

/**
 * Runs the reference server: an agent of the A2A SDK over gRPC and JSON-RPC, with its store in memory. The
 * agent completes each message at once. The server runs in a separate process and reports its addresses.
 */

process.on("disconnect", () => process.exit());

const CARD = {
  name: "worker",
  description: "counts words",
  supportedInterfaces: ["GRPC", "JSONRPC"].map((protocolBinding) => ({
    url: "127.0.0.1",
    protocolBinding,
    tenant: "",
    protocolVersion: "1.0",
  })),
  provider: undefined,
  version: "1",
  capabilities: { extensions: [] },
  securitySchemes: {},
  securityRequirements: [],
  defaultInputModes: ["text/plain"],
  defaultOutputModes: ["application/json"],
  skills: [],
  signatures: [],
};

const RESULT: Part = {
  content: { $case: "data", value: { words: 3 } },
  metadata: undefined,
  filename: "",
  mediaType: "",
};

const executor: AgentExecutor = {
  async execute({ taskId, contextId, userMessage }, bus) {
    const status = (state: TaskState) => ({ state, message: undefined, timestamp: new Date().toISOString() });
    const task: Task = {
      id: taskId,
      contextId,
      status: status(TaskState.TASK_STATE_SUBMITTED),
      artifacts: [],
      history: [userMessage],
      metadata: undefined,
    };
    bus.publish(AgentEvent.task(task));
    const working = status(TaskState.TASK_STATE_WORKING);
    bus.publish(AgentEvent.statusUpdate({ taskId, contextId, status: working, metadata: undefined }));
    const artifact = {
      artifactId: "result",
      name: "",
      description: "",
      parts: [RESULT],
      metadata: undefined,
      extensions: [],
    };
    bus.publish(
      AgentEvent.artifactUpdate({
        taskId,
        contextId,
        artifact,
        append: false,
        lastChunk: true,
        metadata: undefined,
      }),
    );
    const completed = status(TaskState.TASK_STATE_COMPLETED);
    bus.publish(AgentEvent.statusUpdate({ taskId, contextId, status: completed, metadata: undefined }));
    bus.finished();
  },
  async cancelTask() {},
};

const server = new Server();
const requestHandler = new DefaultRequestHandler(CARD, new InMemoryTaskStore(), executor);
const userBuilder = UserBuilder.noAuthentication;
server.addService(A2AService, grpcService({ requestHandler, userBuilder }));
const port = await new Promise<number>((resolve, reject) => {
  server.bindAsync("127.0.0.1:0", ServerCredentials.createInsecure(), (error, bound) =>
    error === null ? resolve(bound) : reject(error),
  );
});
const app = express();
app.use(jsonRpcHandler({ requestHandler, userBuilder }));
const http = createServer(app as RequestListener);
await new Promise<void>((resolve) => http.listen(0, "127.0.0.1", resolve));
process.send?.({
  grpc: `127.0.0.1:${port}`,
  jsonRpc: `http://127.0.0.1:${(http.address() as AddressInfo).port}/`,
});
