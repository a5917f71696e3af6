import { request } from "node:http";
import type { JsonObject } from "@bufbuild/protobuf";
import { EnvelopeSchema } from "@depute/contracts/asp/v0/envelope_pb";
import { newId } from "@depute/core";
import { createProof } from "@depute/dct";
import { nativeEngine } from "@depute/dct/native";
import { encode } from "@depute/wire";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Agent, ALPHA, BETA, GAMMA, overHttp, write } from "./cast.ts";
import { type Platform, register, startPlatform } from "./platform.ts";
import { invite, LINES } from "./scenario.ts";

const CAST = [ALPHA, BETA, GAMMA];
let platform: Platform;
beforeAll(async () => {
  platform = await startPlatform();
  for (const one of CAST) await register(platform, one);
});
afterAll(() => platform.stop());

const wire = () => overHttp(platform.url);

/** A WebSocket client that uses only Node.js. The client shares no code with the server. */
class Client {
  readonly frames: JsonObject[] = [];
  readonly closed: Promise<number>;
  readonly #socket: WebSocket;
  readonly #waiting = new Set<() => void>();

  constructor(sessionId: string) {
    this.#socket = new WebSocket(`${platform.url.replace("http", "ws")}/v1/asp/sessions/${sessionId}/ws`);
    this.#socket.onmessage = ({ data }) => {
      this.frames.push(JSON.parse(String(data)) as JsonObject);
      this.#rouse();
    };
    this.closed = new Promise((resolve) => {
      this.#socket.onclose = ({ code }) => {
        resolve(code);
        this.#rouse();
      };
    });
  }

  #rouse(): void {
    for (const rouse of this.#waiting) rouse();
  }

  async say(frame: JsonObject | string | Uint8Array<ArrayBuffer>): Promise<void> {
    if (this.#socket.readyState === WebSocket.CONNECTING) {
      await new Promise<void>((resolve) => {
        this.#socket.onopen = () => resolve();
      });
    }
    this.#socket.send(
      typeof frame === "string" || frame instanceof Uint8Array ? frame : JSON.stringify(frame),
    );
  }

  /** Waits for a frame that satisfies a condition; returns the first. */
  async heard(is: (frame: JsonObject) => boolean): Promise<JsonObject> {
    for (;;) {
      const found = this.frames.find(is);
      if (found !== undefined) return found;
      await new Promise<void>((resolve) => {
        const rouse = () => {
          this.#waiting.delete(rouse);
          resolve();
        };
        this.#waiting.add(rouse);
      });
    }
  }

  /** Authenticates on this connection. */
  async auth(more: JsonObject = {}): Promise<this> {
    await this.say({ type: "auth", ...more });
    await this.heard(({ type }) => type === "auth_ok");
    return this;
  }

  close(): void {
    this.#socket.close();
  }
}

const document = (...parts: Parameters<typeof write>) =>
  encode(EnvelopeSchema, write(...parts)) as JsonObject;

test("the scenario is played over WebSockets: acks, messages in order, states, trust", async () => {
  const { sessionId } = await invite(wire());
  const clients = new Map<Agent, Client>();
  for (const one of [ALPHA, BETA]) clients.set(one, await new Client(sessionId).auth());
  const states: JsonObject[string][] = [];
  for (const [who, performative, body, , recipient] of LINES) {
    const client = clients.get(who) ?? (await new Client(sessionId).auth({ sinceSequence: 8 }));
    clients.set(who, client);
    const message = document(who, performative, body, await wire().get(sessionId), recipient);
    await client.say({ type: "send", message });
    const told = await client.heard(
      ({ messageId, type }) => messageId === message.messageId && type !== "message",
    );
    expect(told).toMatchObject({ type: "ack" });
    states.push(told.state ?? null);
  }
  const { state: last } = await wire().get(sessionId);
  expect(states.at(-1)).toBe("CLOSED");
  expect(states).toContain("AGREEING");
  const messages = LINES.length + 1;
  for (const [who, client] of clients) {
    expect(await client.closed, who.uri).toBe(1000);
    const of = (type: string) => client.frames.filter((frame) => frame.type === type);
    const first = who === GAMMA ? 9 : 1;
    expect(of("message").map(({ ordinal }) => ordinal)).toEqual(
      Array.from({ length: messages - first + 1 }, (_, i) => i + first),
    );
    expect(of("session_state").at(-1)?.state).toBe("CLOSED");
    expect(
      of("trust_update")
        .map(({ agentId }) => agentId)
        .sort(),
    ).toEqual(CAST.map(({ uri }) => uri).sort());
  }
  expect(last).toBeGreaterThan(0);
});

test("a refused client gets the reason and close code 4001", async () => {
  const { sessionId } = await invite(wire());
  const outcome = async (id: string, frame: JsonObject | string) => {
    const client = new Client(id);
    await client.say(frame);
    const code = await client.closed;
    const { error } = client.frames[0] as { error?: JsonObject };
    return [code, error?.reason, client.frames.length];
  };
  const wrong = { type: "auth", authorization: "Bearer nobody" };
  expect(await outcome(sessionId, wrong)).toEqual([4001, "UNAUTHENTICATED", 1]);
  expect(await outcome(sessionId, { type: "auth", dpop: "e30.e30.e30" })).toEqual([
    4001,
    "UNAUTHENTICATED",
    1,
  ]);
  expect(await outcome(newId(), { type: "auth" })).toEqual([4001, "SESSION_NOT_FOUND", 1]);
  expect(await outcome("no-uuid", { type: "auth" })).toEqual([4001, "INVALID_REQUEST", 1]);
  expect(await outcome(sessionId, { type: "auth", sinceSequence: 2 })).toEqual([4001, "INVALID_REQUEST", 1]);
  expect(await outcome(sessionId, { type: "send" })).toEqual([4001, "INVALID_REQUEST", 1]);
  const early = { type: "send", message: document(BETA, "OBSERVE", {}, await wire().get(sessionId)) };
  expect(await outcome(sessionId, early)).toEqual([4001, "UNAUTHENTICATED", 1]);
  expect(await outcome(sessionId, "{")).toEqual([4001, "MALFORMED_JSON", 1]);
});

test("a holder proof lets its agent in, and no other agent; each message then brings its own", async () => {
  const { sessionId } = await invite(wire());
  const proof = ({ key, seed }: Agent, place: string, htm: string) =>
    createProof(
      nativeEngine,
      { principal: { id: key }, privateKey: seed },
      { htm, htu: `${platform.url}/v1/asp/sessions/${sessionId}/${place}` },
    );
  const stranger = new Client(sessionId);
  await stranger.say({ type: "auth", dpop: proof(GAMMA, "ws", "GET") });
  expect(await stranger.closed).toBe(4001);
  const client = await new Client(sessionId).auth({ dpop: proof(BETA, "ws", "GET") });
  const session = await wire().get(sessionId);
  const accept = { referenceId: "inv" };
  const foreign = document(ALPHA, "WITHDRAW", accept, session);
  await client.say({ type: "send", message: foreign });
  const refused = await client.heard(
    ({ messageId, type }) => type === "error" && messageId === foreign.messageId,
  );
  expect(refused.error).toMatchObject({ reason: "UNAUTHENTICATED" });
  const own = encode(
    EnvelopeSchema,
    write(BETA, "ACCEPT", accept, session, undefined, proof(BETA, "messages", "POST")),
  ) as JsonObject;
  await client.say({ type: "send", message: own });
  await client.heard(({ type, messageId }) => type === "ack" && messageId === own.messageId);
  client.close();
});

test("malformed and refused frames get an error, and the connection stays open", async () => {
  const { sessionId } = await invite(wire());
  const client = await new Client(sessionId).auth();
  const errors = () =>
    client.frames.filter(({ type }) => type === "error").map((frame) => frame.error as JsonObject);
  await client.say("[]");
  await client.say({ type: "shout" });
  await client.say({ type: "auth" });
  await client.say({ type: "send", message: { version: "asp/0.1" } });
  const session = await wire().get(sessionId);
  const elsewhere = document(BETA, "ACCEPT", { referenceId: "inv" }, { ...session, sessionId: newId() });
  await client.say({ type: "send", message: elsewhere });
  const stale = document(
    BETA,
    "ACCEPT",
    { referenceId: "inv" },
    { ...session, lastHash: `sha256:${"1".repeat(64)}` },
  );
  await client.say({ type: "send", message: stale });
  await client.heard(({ messageId, type }) => type === "error" && messageId === stale.messageId);
  expect(errors().map(({ reason }) => reason)).toEqual([
    "INVALID_REQUEST",
    "INVALID_REQUEST",
    "INVALID_REQUEST",
    "INVALID_REQUEST",
    "INVALID_REQUEST",
    "SESSION_HEAD_MOVED",
  ]);
  await client.say({ type: "pong" });
  const good = document(BETA, "ACCEPT", { referenceId: "inv" }, session);
  await client.say({ type: "send", message: good });
  await client.heard(({ type, messageId }) => type === "ack" && messageId === good.messageId);
  await client.say(new Uint8Array([1]));
  expect(await client.closed).toBe(1003);
});

test("frames have a limit of size and number", async () => {
  const { sessionId } = await invite(wire());
  const big = await new Client(sessionId).auth();
  await big.say(`"${"x".repeat(1_100_000)}"`);
  expect(await big.closed).toBe(1009);
  const many = await new Client(sessionId).auth();
  for (let i = 0; i < 2000; i++) await many.say("1");
  expect(await many.closed).toBe(1008);
});

test("only the platform's own pages may open a WebSocket, and only at its address", async () => {
  const { sessionId } = await invite(wire());
  const status = (path: string, headers: Record<string, string>) =>
    new Promise<number | undefined>((resolve, reject) => {
      const asked = request(`${platform.url}${path}`, { headers });
      asked.on("response", (response) => resolve(response.resume().statusCode));
      asked.on("upgrade", ({ statusCode }, socket) => {
        socket.destroy();
        resolve(statusCode);
      });
      asked.on("error", reject);
      asked.end();
    });
  const upgrade = {
    connection: "Upgrade",
    upgrade: "websocket",
    "sec-websocket-version": "13",
    "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==",
  };
  const path = `/v1/asp/sessions/${sessionId}/ws`;
  expect(await status(path, upgrade)).toBe(101);
  expect(await status(path, { ...upgrade, origin: platform.url })).toBe(101);
  expect(await status(path, { ...upgrade, origin: "https://other.example" })).toBe(403);
  expect(await status(path, { ...upgrade, "sec-websocket-version": "7" })).toBe(400);
  expect(await status(path, {})).toBe(426);
  expect(await status("/v1/asp/sessions", { ...upgrade, upgrade: "h2c" })).toBe(400);
  expect(await status("/health", { ...upgrade, upgrade: "h2c" })).toBe(200);
});

test("a server that drains disconnects its clients", async () => {
  const own = await startPlatform();
  const was = platform;
  try {
    for (const one of CAST) await register(own, one);
    platform = own;
    const { sessionId } = await invite(wire());
    const client = await new Client(sessionId).auth();
    await own.stop();
    expect(await client.closed).toBe(1001);
  } finally {
    platform = was;
  }
});
