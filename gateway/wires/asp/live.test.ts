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
import { createLogger } from "@depute/service";
import { afterEach, beforeEach, expect, test } from "vitest";
import WebSocket from "ws";
import type { Clients } from "../../src/clients.ts";
import { AUTH_MS, aspUpgrades, HEARTBEAT_MS } from "./live.ts";

const ID = "019526b1-0000-7000-8000-000000000002";

let clock: ManualClock;
let server: Server;
let stopping: AbortController;
/** What the session service tells. */
let watched: () => AsyncGenerator<WatchSessionResponse>;

const begin = create(WatchSessionResponseSchema, {
  state: SessionState.CONVERSING,
  session: create(SessionSchema, { sessionId: ID, state: SessionState.CONVERSING }),
});

beforeEach(async () => {
  clock = new ManualClock(0);
  stopping = new AbortController();
  watched = async function* () {
    yield begin;
    await new Promise(() => {});
  };
  const clients = { aspSessions: { watchSession: () => watched() } } as unknown as Clients;
  const [route] = aspUpgrades(clients, {
    log: createLogger({ level: "silent", name: "test" }),
    clock,
    timers: clock,
    publicUrl: "http://127.0.0.1",
    stopping: stopping.signal,
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

async function letIn() {
  const client = await connect();
  client.socket.send('{"type":"auth"}');
  await expect.poll(client.types).toEqual(["auth_ok", "session_state"]);
  return client;
}

test("who does not say who it is in time is closed with 4001", async () => {
  const { closed, types } = await connect();
  clock.advance(AUTH_MS);
  expect([await closed, types()]).toEqual([4001, []]);
});

test("a silent client is asked three times whether it is there; one that answers stays", async () => {
  const [silent, polite] = [await letIn(), await letIn()];
  for (let beat = 1; beat <= 3; beat++) {
    clock.advance(HEARTBEAT_MS);
    await expect.poll(() => polite.types().filter((type) => type === "heartbeat").length).toBe(beat);
    polite.socket.send('{"type":"pong"}');
    // What is sent is read before the next beat.
    const told = polite.types().length;
    polite.socket.send("1");
    await expect.poll(() => polite.types().length).toBeGreaterThan(told);
  }
  clock.advance(HEARTBEAT_MS);
  expect(await silent.closed).toBe(1008);
  expect(polite.socket.readyState).toBe(WebSocket.OPEN);
});

test("the session is read no faster than the client reads, and one that reads nothing is cut off", async () => {
  let told = 0;
  watched = async function* () {
    yield begin;
    const envelope = create(EnvelopeSchema, {
      performative: Performative.OBSERVE,
      content: { body: { kind: { case: "observe", value: { subject: "x".repeat(100_000) } } } },
    });
    for (;;) {
      told += 1;
      yield create(WatchSessionResponseSchema, {
        state: SessionState.CONVERSING,
        entry: { ordinal: told, receivedAt: "2026-03-07T15:00:00.000Z", envelope },
      });
    }
  };
  const client = await connect();
  client.socket.send('{"type":"auth"}');
  await expect.poll(client.types).toContain("message");
  client.socket.pause();
  let before: number;
  do {
    before = told;
    await new Promise((resolve) => setTimeout(resolve, 100));
  } while (told > before);
  // What the kernel takes, and no more.
  expect(told).toBeLessThan(1000);
  clock.advance(60_000);
  client.socket.resume();
  expect(await client.closed).toBe(1006);
});

test("a drain sends clients away, and takes no more of them", async () => {
  const { closed } = await letIn();
  stopping.abort();
  expect(await closed).toBe(1001);
  const late = new WebSocket(`ws://127.0.0.1:${(server.address() as AddressInfo).port}`);
  const error = await new Promise<Error>((resolve) => late.on("error", resolve));
  expect(error.message).toContain("503");
});
