import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

/** A request that the fake model received. */
export interface ReceivedRequest {
  path: string;
  headers: Record<string, string | string[] | undefined>;
  body: { model: string; temperature: number; messages: { content: string }[] };
}

type Reply = number | string | { status: number; headers?: Record<string, string> } | "hang";

/** Starts an endpoint on loopback that answers as a model would, with the answers that a test sets. */
export async function fakeModel() {
  const requests: ReceivedRequest[] = [];
  let replies: (Reply | Promise<Reply>)[] = [];
  const server = createServer(async (request, response) => {
    const parts: Buffer[] = [];
    for await (const part of request) parts.push(part as Buffer);
    requests.push({
      path: request.url ?? "",
      headers: request.headers,
      body: JSON.parse(Buffer.concat(parts).toString()),
    });
    const reply = await (replies.shift() ?? 1);
    if (reply === "hang") return;
    if (typeof reply === "object") {
      response.writeHead(reply.status, reply.headers).end("no");
      return;
    }
    const text = typeof reply === "number" ? JSON.stringify({ score: reply, reasoning: "because" }) : reply;
    const anthropic = {
      content: [{ type: "text", text }],
      usage: { input_tokens: 100, output_tokens: 10 },
    };
    const openai = {
      choices: [{ message: { content: text } }],
      usage: { prompt_tokens: 100, completion_tokens: 10 },
    };
    response.writeHead(200, { "content-type": "application/json" });
    response.end(JSON.stringify(request.url === "/anthropic" ? anthropic : openai));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const host = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    host,
    asked: requests,
    /**
     * Sets the next answers: each is a score, a text, a status, or a promise of one of these. After the last one, every
     * answer has the score 1.
     */
    answer(...next: typeof replies) {
      replies = next;
      requests.length = 0;
    },
    async stop() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

export type FakeModel = Awaited<ReturnType<typeof fakeModel>>;
