import { type IncomingMessage, request as plainRequest } from "node:http";
import { request as tlsRequest } from "node:https";
import { CommandError, EXIT } from "../../exit-codes.ts";
import type { ClientTls } from "../tls.ts";

/** Maximum size in bytes of one message of the platform. */
const MAX_MESSAGE_BYTES = 64 * 1024 * 1024;

/** A JSON-RPC message. */
export type Message = Readonly<Record<string, unknown>>;

export interface ExchangeOptions {
  readonly url: string;
  readonly method: "POST" | "GET" | "DELETE";
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
  readonly tls: ClientTls | undefined;
  readonly signal: AbortSignal;
}

/** The HTTP response to one request. */
export interface Answer {
  readonly status: number;
  header(name: string): string | undefined;
  /** Whether the response contains messages: its body is JSON or a stream of events. */
  readonly hasMessages: boolean;
  /** The messages of the response, as they arrive. */
  messages(): AsyncIterable<Message>;
}

/** Sends one HTTP request of MCP's Streamable HTTP. Throws CommandError if the platform cannot be reached. */
export async function exchange(options: ExchangeOptions): Promise<Answer> {
  const response = await responseTo(options);
  const type = String(response.headers["content-type"] ?? "");
  const isStream = type.startsWith("text/event-stream");
  const hasMessages = isStream || type.startsWith("application/json");
  if (!hasMessages) response.resume();
  return {
    status: response.statusCode ?? 0,
    header(name) {
      const value = response.headers[name];
      return Array.isArray(value) ? value[0] : value;
    },
    hasMessages,
    messages: () => (isStream ? eventsOf(response) : documentOf(response)),
  };
}

function responseTo({ url, method, headers, body, tls, signal }: ExchangeOptions): Promise<IncomingMessage> {
  const request = url.startsWith("https:") ? tlsRequest : plainRequest;
  return new Promise((resolve, reject) => {
    const sent = request(url, { method, headers, signal, ...tls }, resolve);
    sent.on("error", (cause) => {
      const message = `${new URL(url).origin} cannot be reached (${cause.message}); check that the platform runs, and --server`;
      reject(signal.aborted ? cause : new CommandError(message, EXIT.unreachable));
    });
    sent.end(body);
  });
}

async function* documentOf(response: IncomingMessage): AsyncGenerator<Message> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of response as AsyncIterable<Buffer>) {
    chunks.push(chunk);
    bytes += chunk.length;
    if (bytes > MAX_MESSAGE_BYTES) throw tooLarge();
  }
  if (bytes > 0) yield JSON.parse(Buffer.concat(chunks).toString("utf8")) as Message;
}

/** Yields the messages of a stream of server-sent events. Skips events without data, and comments. */
async function* eventsOf(response: IncomingMessage): AsyncGenerator<Message> {
  let text = "";
  for await (const chunk of response.setEncoding("utf8") as AsyncIterable<string>) {
    text += chunk;
    if (text.length > MAX_MESSAGE_BYTES) throw tooLarge();
    if (!/\r?\n\r?\n/.test(chunk) && !/\n\r?\n/.test(text.slice(-chunk.length - 3))) continue;
    const events = text.split(/\r?\n\r?\n/);
    text = events.pop() ?? "";
    for (const event of events) {
      const lines = event.split(/\r?\n/).filter((line) => line.startsWith("data:"));
      const data = lines.map((line) => line.slice(5).replace(/^ /, "")).join("\n");
      if (data !== "") yield JSON.parse(data) as Message;
    }
  }
}

function tooLarge(): CommandError {
  return new CommandError(
    `a message of the platform exceeds ${MAX_MESSAGE_BYTES} bytes; request less at once`,
  );
}
