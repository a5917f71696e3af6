import { fork } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { type Message, Role, TaskState } from "@a2a-js/sdk";
import { A2AService } from "@a2a-js/sdk/server/grpc";
import { credentials, Metadata, makeGenericClientConstructor } from "@grpc/grpc-js";

/** Starts the A2A SDK's server in a separate process, with a plain @grpc/grpc-js client. */
export async function startA2a() {
  const child = fork(join(import.meta.dirname, "a2a-server.ts"));
  const address = await new Promise<string>((resolve, reject) => {
    child.once("message", (message) => resolve((message as { a2a: string }).a2a));
    child.once("exit", (code) => reject(new Error(`the server ended with ${code}`)));
  });
  const Client = makeGenericClientConstructor(A2AService, "A2AService");
  const client = new Client(address, credentials.createInsecure());
  const metadata = new Metadata();
  metadata.set("a2a-version", "1.0");
  const sendMessage = promisify((request: unknown, done: (error: unknown, answer?: unknown) => void) =>
    client.sendMessage?.(request, metadata, done),
  );
  let messages = 0;
  return {
    /** Sends one message. Resolves when the task that the message creates is completed. */
    async send(): Promise<void> {
      const message: Message = {
        messageId: `message ${++messages}`,
        contextId: "",
        taskId: "",
        role: Role.ROLE_USER,
        parts: [
          {
            content: { $case: "text", value: "count words" },
            metadata: undefined,
            filename: "",
            mediaType: "",
          },
        ],
        metadata: undefined,
        extensions: [],
        referenceTaskIds: [],
      };
      const request = { tenant: "", message, configuration: undefined, metadata: undefined };
      const answer = (await sendMessage(request)) as {
        payload?: { value?: { status?: { state?: TaskState } } };
      };
      if (answer.payload?.value?.status?.state !== TaskState.TASK_STATE_COMPLETED) {
        throw new Error("the task was not completed");
      }
    },
    close() {
      client.close();
      return new Promise<void>((resolve) => {
        child.once("exit", () => resolve());
        child.disconnect();
      });
    },
  };
}
