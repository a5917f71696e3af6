import { once } from "node:events";
import { constants, createServer as createHttp2Server } from "node:http2";
import { createServer, type Socket } from "node:net";
import { ErrorReason, systemTimers } from "@depute/core";
import { afterEach, describe, expect, test } from "vitest";
import { fromConnectError } from "./errors-on-wire.ts";
import { shuttingDown } from "./interceptors/server.ts";
import { type EchoTrace, echoClient, echoRoutes } from "./testing/echo.ts";
import { startEchoServer } from "./testing/echo-server.ts";
import { createReplicasTransport } from "./transport.ts";

const closing: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0)) await close();
});

interface EchoReplica {
  readonly url: string;
  readonly port: number;
  readonly trace: EchoTrace;
  /** Ends streams, as a draining process does. */
  drain(): void;
  /** Ends all connections and stops listening, as a crash of the process would. */
  kill(): Promise<void>;
}

/** Starts a replica that answers `unary` with its own name. */
async function startReplica(name: string, port = 0): Promise<EchoReplica> {
  const trace: EchoTrace = { started: 0, ended: [] };
  const stopping = new AbortController();
  const { server } = await startEchoServer({
    ...{ fast: true, trace, maxRequestBytes: 10_000, stopping: stopping.signal },
    server: {
      place: { host: "127.0.0.1", port },
      routes: [{ methods: ["GET"], path: "/readyz", handle: async (_, response) => void response.end(name) }],
    },
    routes: (router) => echoRoutes(trace)(router),
  });
  const kill = () => server.close(0);
  closing.push(kill);
  return { url: server.url, port: server.port, trace, drain: () => stopping.abort(shuttingDown()), kill };
}

function clientOf(...urls: string[]) {
  const timers = systemTimers;
  const transport = createReplicasTransport(urls, { service: "echo", timers, random: () => 0 });
  closing.push(() => transport.close());
  return echoClient(transport);
}

/** Returns an address that accepts connections but never answers, like a process that was stopped by a signal. */
async function startSilent(): Promise<string> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => void sockets.add(socket.on("error", () => {})));
  await once(server.listen(0, "127.0.0.1"), "listening");
  closing.push(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as { port: number }).port}`;
}

const reasonOf = async (call: Promise<unknown>) =>
  fromConnectError(await call.then(() => new Error("answered")).catch((error: unknown) => error)).reason;

async function texts(stream: AsyncIterable<{ text: string }>): Promise<string[]> {
  const all: string[] = [];
  for await (const { text } of stream) all.push(text);
  return all;
}

describe("calls to replicas", () => {
  test("go to each in turn", async () => {
    const replicas = await Promise.all(["a", "b", "c"].map((name) => startReplica(name)));
    const client = clientOf(...replicas.map(({ url }) => url));
    const calls = Array.from({ length: 6 }, () => client.unary({ do: "wait" }, { timeoutMs: 500 }));
    await Promise.allSettled(calls);
    expect(replicas.map(({ trace }) => trace.started)).toEqual([2, 2, 2]);
  });

  test("continue at another replica while one does not listen, repeatable or not", async () => {
    const [a, b] = [await startReplica("a"), await startReplica("b")];
    const client = clientOf(a.url, b.url);
    await a.kill();
    for (let n = 0; n < 4; n++) expect((await client.unary({ text: `${n}` })).text).toBe(`${n}`);
    expect(await texts(client.server({ text: "n" }))).toEqual(["n1", "n2", "n3"]);
  });

  test("at a killed replica are repeated if they are repeatable", async () => {
    const [a, b] = [await startReplica("a"), await startReplica("b")];
    const client = clientOf(a.url, b.url);
    // The calls go to the replicas a, b, a and b, in this order.
    const pending = [client.read, client.read, client.unary, client.unary].map((call) =>
      call({ do: "wait" }),
    );
    const outcomes = pending.map((call) => reasonOf(call));
    await expect.poll(() => [a.trace.started, b.trace.started]).toEqual([2, 2]);
    await a.kill();
    expect(await outcomes[2]).toBe(ErrorReason.DEPENDENCY_UNAVAILABLE);
    await expect.poll(() => b.trace.started).toBe(3);
  });

  test("fail at once if their stream ends without an error and without an answer", async () => {
    const server = createHttp2Server();
    server.on("stream", (stream) => stream.close(constants.NGHTTP2_NO_ERROR));
    await once(server.listen(0, "127.0.0.1"), "listening");
    closing.push(() => server.close());
    const url = `http://127.0.0.1:${(server.address() as { port: number }).port}`;
    const b = await startReplica("b");
    const client = clientOf(url, b.url);
    expect((await client.read({ text: "x" })).text).toBe("x");
    expect(await reasonOf(clientOf(url, url).unary({}, { timeoutMs: 5_000 }))).toBe(
      ErrorReason.DEPENDENCY_UNAVAILABLE,
    );
  });

  test("return to a replica that is ready again", async () => {
    const [a, b] = [await startReplica("a"), await startReplica("b")];
    const client = clientOf(a.url, b.url);
    await a.kill();
    for (let n = 0; n < 2; n++) await client.unary({});
    const again = await startReplica("a", a.port);
    await expect
      .poll(async () => {
        await Promise.allSettled([1, 2].map(() => client.unary({ do: "wait" }, { timeoutMs: 50 })));
        return again.trace.started;
      })
      .toBeGreaterThan(0);
  });

  test("avoid a replica that accepts connections and does not answer", async () => {
    const [silent, b] = [await startSilent(), await startReplica("b")];
    const client = clientOf(silent, b.url);
    const begin = performance.now();
    expect((await client.read({ text: "x" })).text).toBe("x");
    expect(performance.now() - begin).toBeGreaterThan(900);
    // The silent replica counts as failed, so no further call waits for it.
    const answers = await Promise.all(
      Array.from({ length: 8 }, () => client.unary({ text: "y" }, { timeoutMs: 900 })),
    );
    expect(answers.map(({ text }) => text)).toEqual(Array(8).fill("y"));
  }, 20_000);

  test("fail as UNAVAILABLE while no replica listens", async () => {
    const [a, b] = [await startReplica("a"), await startReplica("b")];
    const client = clientOf(a.url, b.url);
    await Promise.all([a.kill(), b.kill()]);
    expect(await reasonOf(client.read({}))).toBe(ErrorReason.DEPENDENCY_UNAVAILABLE);
  });
});

describe("streams from replicas", () => {
  test("begin at another replica if theirs drains", async () => {
    const [a, b] = [await startReplica("a"), await startReplica("b")];
    const client = clientOf(a.url, b.url);
    a.drain();
    for (let n = 0; n < 4; n++) expect(await texts(client.server({ text: "n" }))).toEqual(["n1", "n2", "n3"]);
  });

  test("end with the reason if their replica drains after the first message", async () => {
    const [a, b] = [await startReplica("a"), await startReplica("b")];
    const client = clientOf(a.url, b.url);
    const seen: string[] = [];
    const reading = (async () => {
      for await (const { text } of client.server({ do: "wait" })) seen.push(text);
    })();
    await expect.poll(() => seen).toEqual(["1", "2", "3"]);
    a.drain();
    expect(await reasonOf(reading)).toBe(ErrorReason.SHUTTING_DOWN);
    expect(b.trace.started).toBe(0);
  });

  test("end at their replica when their reader leaves", async () => {
    const [a, b] = [await startReplica("a"), await startReplica("b")];
    const leaving = new AbortController();
    const stream = clientOf(a.url, b.url).server({ do: "wait" }, { signal: leaving.signal });
    const reading = (async () => {
      for await (const { text } of stream) if (text === "3") leaving.abort();
    })();
    await expect(reading).rejects.toMatchObject({ code: 1 });
    await expect.poll(() => a.trace.ended).toEqual([{ aborted: true }]);
  });
});
