import type { ServerResponse } from "node:http";
import type { HttpRequest, HttpResponse } from "@depute/service";

/** Headers that belong to one hop, or that HTTP/2 does not know. */
const OF_THE_HOP = /^(:.*|connection|keep-alive|transfer-encoding|upgrade|proxy-.*|te|trailer)$/;

/** A request in the form that the MCP SDK takes. Its body was read already and goes beside it. */
export function toWebRequest(request: HttpRequest, url: string, signal: AbortSignal): Request {
  const headers = new Headers();
  for (const [name, value] of Object.entries(request.headers)) {
    if (typeof value === "string" && !OF_THE_HOP.test(name)) headers.set(name, value);
  }
  const method = request.method === "HEAD" ? "GET" : (request.method ?? "GET");
  return new Request(url, { method, headers, signal });
}

/** Answers with what the SDK gave, events as they come and no faster than the client reads them. */
export async function sendWebResponse(answer: Response, response: HttpResponse): Promise<void> {
  const headers: Record<string, string> = {};
  for (const [name, value] of answer.headers) if (!OF_THE_HOP.test(name)) headers[name] = value;
  // The two forms of a response have the same method, with overloads that do not agree.
  (response as ServerResponse).writeHead(answer.status, headers);
  if (answer.body === null || response.req.method === "HEAD") {
    response.end();
    await answer.body?.cancel();
    return;
  }
  // A client waits for the headers of a stream, whose first event may be long in coming.
  (response as ServerResponse).flushHeaders();
  const reader = answer.body.getReader();
  response.once("close", () => void reader.cancel().catch(() => {}));
  for (;;) {
    const { done, value } = await reader.read();
    if (done || response.destroyed) break;
    const isTaken = (response as ServerResponse).write(value);
    if (!isTaken) await drained(response);
  }
  response.end();
}

function drained(response: HttpResponse): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      response.off("drain", done);
      response.off("close", done);
      resolve();
    };
    response.on("drain", done);
    response.on("close", done);
  });
}
