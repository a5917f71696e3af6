import { type Message, type Part, Role } from "@a2a-js/sdk";
import { type Client, ClientFactory, ClientFactoryOptions } from "@a2a-js/sdk/client";
import { GrpcTransportFactory } from "@a2a-js/sdk/client/grpc";
import { WorkFailure } from "@depute/client";
import { afterAll, beforeAll } from "vitest";
import { introduce, startPlatform, type TestPlatform } from "../gateway/platform.ts";

/** The agent's work for each text. The agent returns any other text unchanged. */
const WORK = {
  echo: "returns its input",
  data: "returns data",
  files: "returns two artifacts",
  ask: "asks for a colour, and returns the answer",
  authorize: "asks for an authorization, and returns the answer",
  reply: "answers with a message",
  fail: "fails",
  wait: "reports progress, then works until it is cancelled",
} as const;

/** The artifacts of the work `files`, in their A2A form. */
export const FILES = [
  { artifactId: "summary", name: "Summary", parts: [{ text: "three words" }] },
  { artifactId: "picture", parts: [{ raw: "AAH/", filename: "a.png", mediaType: "image/png" }] },
];

/** The bindings of A2A. */
export const BINDINGS = ["JSONRPC", "HTTP+JSON", "GRPC"] as const;
export type Binding = (typeof BINDINGS)[number];

/** A platform with one agent that A2A's official clients call. */
export class Scene {
  platform!: TestPlatform;
  client!: Client;

  readonly #binding: Binding;

  constructor(binding: Binding = "JSONRPC", flags: readonly string[] = []) {
    this.#binding = binding;
    beforeAll(async () => {
      this.platform = await startPlatform(flags);
      await introduce(this.platform, "worker", [["sum"]]);
      this.platform.work("worker", async (input, { ask, progress, partial, signal }) => {
        switch (input) {
          case "data" satisfies keyof typeof WORK:
            return { output: { words: 3, list: [null, true] } };
          case "files" satisfies keyof typeof WORK:
            return { output: { artifacts: FILES } };
          case "ask" satisfies keyof typeof WORK:
            return { output: await ask("which colour?", { options: ["red", "blue"] }) };
          case "authorize" satisfies keyof typeof WORK:
            return { output: await ask("may I pay 5 EUR?", undefined, "authorization") };
          case "reply" satisfies keyof typeof WORK:
            return { output: { message: { parts: [{ text: "hi there" }] } } };
          case "fail" satisfies keyof typeof WORK:
            throw new WorkFailure("NO_LUCK", "there was no luck", false);
          case "wait" satisfies keyof typeof WORK:
            await progress(1, 2, "half way");
            await partial("so far");
            await aborted(signal);
            return { output: null };
          default:
            return { output: input };
        }
      });
      this.client = await this.connect();
    }, 60_000);
    afterAll(() => this.platform.stop());
  }

  /** Connects an official client, which reads the agent's address and bindings from the agent's card. */
  connect(): Promise<Client> {
    return this.connectOver(this.#binding);
  }

  /** Connects an official client over this binding. */
  connectOver(binding: Binding): Promise<Client> {
    return clientOver(this.platform.url, "worker", binding);
  }

  /** Sends a message, and returns the task in the answer. Throws if the answer is no task. */
  async send(message: Message, more: object = {}, client = this.client) {
    const answer = await client.sendMessage({ ...request(message), ...more });
    if (!("status" in answer)) throw new Error("the answer is no task");
    return answer;
  }
}

/** Connects an official client to an agent over a binding. */
export function clientOver(platformUrl: string, agentId: string, binding: Binding): Promise<Client> {
  const factory = new ClientFactory(
    ClientFactoryOptions.createFrom(ClientFactoryOptions.default, {
      transports: [new GrpcTransportFactory()],
      preferredTransports: [binding],
    }),
  );
  return factory.createFromUrl(platformUrl, `/a2a/${agentId}/.well-known/agent-card.json`);
}

/** Resolves when the signal aborts, or at once if it already has. */
function aborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
}

/** Makes a SendMessage request with a message. */
export function request(message: Message) {
  return { tenant: "", message, configuration: undefined, metadata: undefined };
}

/** Makes a user's message with a text, or with these parts. */
export function userMessage(
  content: string | readonly Part["content"][],
  more: Partial<Message> = {},
): Message {
  const contents = typeof content === "string" ? [{ $case: "text", value: content } as const] : [...content];
  return {
    messageId: crypto.randomUUID(),
    contextId: "",
    taskId: "",
    role: Role.ROLE_USER,
    parts: contents.map((each) => ({ content: each, metadata: undefined, filename: "", mediaType: "" })),
    metadata: undefined,
    extensions: [],
    referenceTaskIds: [],
    ...more,
  };
}

/** Returns all events of a stream. */
export async function all<T>(stream: AsyncIterable<T>): Promise<T[]> {
  const items: T[] = [];
  for await (const item of stream) items.push(item);
  return items;
}
