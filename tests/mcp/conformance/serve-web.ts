import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { Readable } from "node:stream";
import type { ReadableStream as WebStream } from "node:stream/web";
import {
  hostHeaderValidationResponse,
  localhostAllowedHostnames,
  localhostAllowedOrigins,
  originValidationResponse,
} from "@modelcontextprotocol/server";

/** Serves a function of web requests over HTTP, for local hosts and origins alone. */
export async function serveWeb(
  answer: (request: Request) => Promise<Response>,
): Promise<{ url: string; stop(): void }> {
  const guarded = async (request: Request) =>
    hostHeaderValidationResponse(request, localhostAllowedHostnames()) ??
    originValidationResponse(request, localhostAllowedOrigins()) ??
    answer(request);
  const http = createServer(async (incoming, outgoing) => {
    const gone = new AbortController();
    outgoing.once("close", () => gone.abort());
    const headers = Object.entries(incoming.headers).map(([name, value]) => [name, String(value)]);
    const response = await guarded(
      new Request(`http://${incoming.headers.host}${incoming.url}`, {
        method: incoming.method ?? "GET",
        headers: headers as [string, string][],
        signal: gone.signal,
        ...(incoming.method === "POST" ? { body: Readable.toWeb(incoming) as never, duplex: "half" } : {}),
      }),
    );
    outgoing.writeHead(response.status, Object.fromEntries(response.headers));
    outgoing.flushHeaders();
    if (response.body === null) outgoing.end();
    else
      Readable.fromWeb(response.body as WebStream)
        .on("error", () => outgoing.destroy())
        .pipe(outgoing);
  });
  await new Promise<void>((resolve) => http.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(http.address() as AddressInfo).port}/mcp`,
    stop() {
      http.closeAllConnections();
      http.close();
    },
  };
}
