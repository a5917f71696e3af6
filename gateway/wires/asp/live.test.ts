import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { create } from "@bufbuild/protobuf";
import { EnvelopeSchema, Performative } from "@depute/contracts/asp/v0/envelope_pb";
import { SessionSchema, SessionState } from "@depute/contracts/asp/v0/session_pb";
import {
  type WatchSessionResponse,
  WatchSessionResponseSchema,
} from "@depute/contracts/depute/tasks/v1/session_service_pb";
import { ManualClock } from "@depute/core";
import { createLogger, DIRECT_CLIENTS } from "@depute/service";
import { afterEach, beforeEach, expect, test } from "vitest";
import WebSocket from "ws";
import type { Clients } from "../../edge/clients.ts";
import { AUTH_MS, aspUpgrades, HEARTBEAT_MS } from "./live.ts";

const ID = "019526b1-0000-7000-8000-000000000002";

let clock: ManualClock;
let logged: Record<string, unknown>[];
let server: Server;
let stopping: AbortController;
/** Returns the stream that the fake session service sends. */
let watched: () => AsyncGenerator<WatchSessionResponse>;

const begin = create(WatchSessionResponseSchema, {
  state: SessionState.CONVERSING,
  session: create(SessionSchema, { sessionId: ID, state: SessionState.CONVERSING }),
});

beforeEach(async () => {
  clock = new ManualClock(0);
  stopping = new AbortController();
  const lines: typeof logged = [];
  logged = lines;
  watched = async function* () {
    yield begin;
    await new Promise(() => {});
  };
  const clients = { aspSessions: { watchSession: () => watched() } } as unknown as Clients;
  const [route] = aspUpgrades(clients, {
    log: createLogger({
      level: "debug",
      name: "test",
      destination: { write: (line) => lines.push(JSON.parse(line)) },
    }),
    clock,
    timers: clock,
    publicUrl: "http://127.0.0.1",
    addresses: DIRECT_CLIENTS,
    turns: { enter: () => ({ end() {} }) },
    stopping: stopping.signal,
    loginOf: async () => "local",
    issuers: () => [],
    principalOf: () => "local",
    bodies: { maxBytes: 1024, timeoutMs: 1000, timers: clock },
  });
  server = createServer();
  server.on("upgrade", (request, socket, head) => route?.upgrade(request, socket, head, { id: ID }));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
});
afterEach(() => {
  stopping.abort();
  server.closeAllConnections();
  return new Promise((resolve) => server.close(resolve));
});

async function connect() {
  const socket = new WebSocket(`ws://127.0.0.1:${(server.address() as AddressInfo).port}`);
  const frames: { type: string }[] = [];
  const closed = new Promise<number>((resolve) => socket.on("close", resolve));
  socket.on("message", (data) => frames.push(JSON.parse(String(data)) as { type: string }));
  socket.on("error", () => {});
  await new Promise((resolve) => socket.on("open", resolve));
  const types = () => frames.map(({ type }) => type);
  return { socket, types, closed };
}

async function authenticatedClient() {
  const client = await connect();
  client.socket.send('{"type":"auth"}');
  await expect.poll(client.types).toEqual(["auth_ok", "session_state"]);
  return client;
}

test("closes a client that does not authenticate in time with 4001", async () => {
  const { closed, types } = await connect();
  clock.advance(AUTH_MS);
  expect([await closed, types()]).toEqual([4001, []]);
});

test("each connection has one log line, at info if the server ended it for a fault of the client", async () => {
  const common = {
    wire: "asp",
    method: "GET",
    path: "/v1/asp/sessions/{id}/ws",
    status: 101,
    caller: "local",
  };
  const refused = await connect();
  clock.advance(AUTH_MS);
  await refused.closed;
  const served = await authenticatedClient();
  served.socket.close(1000);
  await served.closed;
  const lines = () => logged.filter(({ msg }) => msg === "wire");
  await expect.poll(lines).toMatchObject([
    { ...common, level: "info", code: 4001, ms: AUTH_MS },
    { ...common, level: "debug", code: 1000 },
  ]);
  expect(lines()[0]?.request_id).not.toBe(lines()[1]?.request_id);
  expect(JSON.stringify(logged)).not.toContain(ID);
});

test("a silent client gets three pings; one that answers stays", async () => {
  const [silent, polite] = [await authenticatedClient(), await authenticatedClient()];
  for (let beat = 1; beat <= 3; beat++) {
    clock.advance(HEARTBEAT_MS);
    await expect.poll(() => polite.types().filter((type) => type === "heartbeat").length).toBe(beat);
    polite.socket.send('{"type":"pong"}');
    // When the answer to the invalid frame `1` arrives, the client has read all earlier frames.
    const before = polite.types().length;
    polite.socket.send("1");
    await expect.poll(() => polite.types().length).toBeGreaterThan(before);
  }
  clock.advance(HEARTBEAT_MS);
  expect(await silent.closed).toBe(1008);
  expect(polite.socket.readyState).toBe(WebSocket.OPEN);
});

test("the session is read no faster than the client reads, and ends for a client that never reads", async () => {
  let ordinal = 0;
  watched = async function* () {
    yield begin;
    const envelope = create(EnvelopeSchema, {
      performative: Performative.OBSERVE,
      content: { body: { kind: { case: "observe", value: { subject: "x".repeat(100_000) } } } },
    });
    for (;;) {
      ordinal += 1;
      yield create(WatchSessionResponseSchema, {
        state: SessionState.CONVERSING,
        entry: { ordinal, receivedAt: "2026-03-07T15:00:00.000Z", envelope },
      });
    }
  };
  const client = await connect();
  client.socket.send('{"type":"auth"}');
  await expect.poll(client.types).toContain("message");
  client.socket.pause();
  let before: number;
  do {
    before = ordinal;
    await new Promise((resolve) => setTimeout(resolve, 100));
  } while (ordinal > before);
  // The server stops sending when the kernel's socket buffer is full, long before the 1,000th message.
  expect(ordinal).toBeLessThan(1000);
  clock.advance(60_000);
  client.socket.resume();
  expect(await client.closed).toBe(1006);
});

test("a drain disconnects clients, and accepts no more of them", async () => {
  const { closed } = await authenticatedClient();
  stopping.abort();
  expect(await closed).toBe(1001);
  const late = new WebSocket(`ws://127.0.0.1:${(server.address() as AddressInfo).port}`);
  const error = await new Promise<Error>((resolve) => late.on("error", resolve));
  expect(error.message).toContain("503");
});
