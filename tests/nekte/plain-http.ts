import { type IncomingMessage, request } from "node:http";

/** A server-sent event, parsed only by the rules of the NEKTE specification. */
export interface PlainEvent {
  readonly event: string;
  // biome-ignore lint/suspicious/noExplicitAny: what a foreign client does not look at, nobody looks at here
  readonly data: any;
}

export interface PlainAnswer {
  readonly status: number;
  readonly headers: IncomingMessage["headers"];
  readonly text: string;
}

/**
 * Posts a document with node:http and only the given headers, so without Accept and User-Agent.
 *
 * @throws Error if the connection breaks before the answer is complete
 */
export function send(url: string, body: unknown, headers: Record<string, string> = {}): Promise<PlainAnswer> {
  const text = typeof body === "string" ? body : JSON.stringify(body);
  return new Promise((resolve, reject) => {
    const asked = request(url, {
      method: "POST",
      headers: { "content-type": "application/json", "content-length": Buffer.byteLength(text), ...headers },
    });
    asked.on("error", reject);
    asked.on("response", (response) => {
      const chunks: Buffer[] = [];
      response.on("data", (chunk: Buffer) => chunks.push(chunk));
      response.on("error", reject);
      response.on("end", () => {
        const { statusCode = 0 } = response;
        resolve({ status: statusCode, headers: response.headers, text: Buffer.concat(chunks).toString() });
      });
    });
    asked.end(text);
  });
}

export async function post(
  url: string,
  body: unknown,
  headers: Record<string, string> = {},
): Promise<string> {
  return (await send(url, body, headers)).text;
}

/** Parses the events of a stream, in order. */
export function eventsIn(text: string): PlainEvent[] {
  return text
    .split("\n\n")
    .map((block) => {
      const lines = new Map(block.split("\n").map((line) => line.split(/: (.*)/s, 2) as [string, string]));
      return { event: lines.get("event") ?? "", data: JSON.parse(lines.get("data") ?? "null") };
    })
    .filter(({ event }) => event !== "");
}
