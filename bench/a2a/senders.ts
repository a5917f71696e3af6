import { promisify } from "node:util";
import { type Message, Role, TaskState } from "@a2a-js/sdk";
import { A2AService } from "@a2a-js/sdk/server/grpc";
import { credentials, Metadata, makeGenericClientConstructor } from "@grpc/grpc-js";

const TEXT = "count words";

/** A client of one A2A agent. It uses no library of A2A beyond the message types. */
export interface Sender {
  /** Sends one message. Resolves when the task that the message creates is completed. */
  send(): Promise<void>;
  close(): void;
}

let messages = 0;

/** Connects a plain @grpc/grpc-js client. */
export function grpcSender(address: string, tenant = ""): Sender {
  const Client = makeGenericClientConstructor(A2AService, "A2AService");
  const client = new Client(address, credentials.createInsecure());
  const metadata = new Metadata();
  metadata.set("a2a-version", "1.0");
  const sendMessage = promisify((request: unknown, done: (error: unknown, answer?: unknown) => void) =>
    client.sendMessage?.(request, metadata, done),
  );
  return {
    async send() {
      const message: Message = {
        messageId: `message ${++messages}`,
        contextId: "",
        taskId: "",
        role: Role.ROLE_USER,
        parts: [
          { content: { $case: "text", value: TEXT }, metadata: undefined, filename: "", mediaType: "" },
        ],
        metadata: undefined,
        extensions: [],
        referenceTaskIds: [],
      };
      const request = { tenant, message, configuration: undefined, metadata: undefined };
      const answer = (await sendMessage(request)) as {
        payload?: { value?: { status?: { state?: TaskState } } };
      };
      if (answer.payload?.value?.status?.state !== TaskState.TASK_STATE_COMPLETED) {
        throw new Error("the task was not completed");
      }
    },
    close: () => client.close(),
  };
}

/** Sends JSON-RPC calls by `fetch`. */
export function jsonRpcSender(url: string): Sender {
  const headers = { "content-type": "application/json", "a2a-version": "1.0" };
  return {
    async send() {
      const message = { messageId: `message ${++messages}`, role: "ROLE_USER", parts: [{ text: TEXT }] };
      const body = { jsonrpc: "2.0", id: messages, method: "SendMessage", params: { message } };
      const answer = await fetch(url, { method: "POST", headers, body: JSON.stringify(body) });
      const { result } = (await answer.json()) as { result?: { task?: { status: { state: string } } } };
      if (result?.task?.status.state !== "TASK_STATE_COMPLETED")
        throw new Error("the task was not completed");
    },
    close() {},
  };
}
