import { once } from "node:events";
import { constants, createServer } from "node:http2";
import type { AddressInfo } from "node:net";
import { Code, ConnectError } from "@connectrpc/connect";
import { afterEach, expect, test } from "vitest";
import { echoClient } from "./testing/echo.ts";
import { startEchoServer } from "./testing/echo-server.ts";
import { createServiceTransport } from "./transport.ts";

type EchoClient = ReturnType<typeof echoClient>;

const closing: (() => void | Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

function clientOf(url: string): EchoClient {
  const transport = createServiceTransport(url, { service: "echo" });
  closing.push(() => transport.close());
  return echoClient(transport);
}

/** Starts a server that resets the first call with a code of HTTP/2, and answers every later call with no content. */
async function resettingFirst(code: number): Promise<{ url: string; calls(): number }> {
  const server = createServer();
  let calls = 0;
  server.on("stream", (stream, headers) => {
    stream.on("error", () => {});
    stream.resume();
    if (++calls === 1) return void stream.close(code);
    const type = String(headers["content-type"]);
    stream.respond({ ":status": 200, "content-type": type });
    // A stream of Connect ends with a message of its own.
    stream.end(
      type.startsWith("application/connect+") ? Buffer.from([2, 0, 0, 0, 2, 0x7b, 0x7d]) : undefined,
    );
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  closing.push(() => void server.close());
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, calls: () => calls };
}

const read = async (messages: AsyncIterable<unknown>) => {
  for await (const _ of messages);
};

test.each<[string, (client: EchoClient) => Promise<unknown>]>([
  ["a call", (client) => client.unary({ do: "x" })],
  ["a call with a holder proof", (client) => client.unary({ do: "x" }, { headers: { dpop: "proof" } })],
  ["a call with a stream of answers", (client) => read(client.server({ do: "x" }))],
])(
  "%s whose stream the server refused is sent again, because the server has not processed it",
  async (_, call) => {
    const { url, calls } = await resettingFirst(constants.NGHTTP2_REFUSED_STREAM);
    await call(clientOf(url));
    expect(calls()).toBe(2);
  },
);

test("a call whose stream failed in another way is not sent again", async () => {
  const { url, calls } = await resettingFirst(constants.NGHTTP2_INTERNAL_ERROR);
  const failure = await clientOf(url).unary({ do: "x" }).catch(ConnectError.from);
  expect(failure).toMatchObject({ code: Code.Unavailable });
  expect(calls()).toBe(1);
});

test("calls succeed while the server closes old connections", async () => {
  const { server } = await startEchoServer({
    ...{ fast: true, maxRequestBytes: 1000, server: { maxConnectionAgeMs: 100 } },
  });
  closing.push(() => server.close(50));
  const client = clientOf(server.url);
  const endMs = performance.now() + 1_000;
  const lane = async () => {
    for (let i = 0; performance.now() < endMs; i++)
      expect((await client.unary({ text: `${i}` })).text).toBe(`${i}`);
  };
  await Promise.all(Array.from({ length: 8 }, lane));
});
