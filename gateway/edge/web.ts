import type { ServerResponse } from "node:http";
import type { HttpRequest, HttpResponse } from "@depute/service";

/** Matches the names of headers that apply to one connection only, or that HTTP/2 does not allow. */
const OF_THE_HOP = /^(:.*|connection|keep-alive|transfer-encoding|upgrade|proxy-.*|te|trailer)$/;

/**
 * The reason with which a request's signal aborts when the client disconnects. All requests share this error, because a
 * new error with a stack for each request would be expensive.
 */
const CLIENT_LEFT = new Error("the client has left");

/**
 * Converts a request to the standard `Request` that libraries use. The result has no body, because the gateway has read
 * the body and passes it separately. The signal aborts when the client disconnects before the answer is complete.
 */
export function toWebRequest(request: HttpRequest, response: HttpResponse, url: string): Request {
  const disconnect = new AbortController();
  response.once("close", () => {
    if (!response.writableFinished) disconnect.abort(CLIENT_LEFT);
  });
  const headers = new Headers();
  for (const [name, value] of Object.entries(request.headers)) {
    if (typeof value === "string" && !OF_THE_HOP.test(name)) headers.set(name, value);
  }
  const method = request.method === "HEAD" ? "GET" : (request.method ?? "GET");
  return new Request(url, { method, headers, signal: disconnect.signal });
}

/** Sends a library's answer. Sends each event as it arrives, and no faster than the client reads. */
export async function sendWebResponse(answer: Response, response: HttpResponse): Promise<void> {
  const headers: Record<string, string> = {};
  for (const [name, value] of answer.headers) if (!OF_THE_HOP.test(name)) headers[name] = value;
  // This type assertion is needed because TypeScript cannot unify the overloads of HTTP/1.1 and HTTP/2 responses, which
  // have the same method.
  (response as ServerResponse).writeHead(answer.status, headers);
  if (answer.body === null || response.req.method === "HEAD") {
    response.end();
    await answer.body?.cancel();
    return;
  }
  // Sends the headers of a stream immediately, because the first event may come late.
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
