import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import { append, idleSession, type Session as Mirror, seal } from "@depute/asp";
import { type Envelope, EnvelopeSchema } from "@depute/contracts/asp/v0/envelope_pb";
import type { Session } from "@depute/contracts/asp/v0/session_pb";
import { newId, reasonName } from "@depute/core";
import { nativeEngine as engine } from "@depute/dct/native";
import { fromConnectError } from "@depute/service";
import { decodeValid, encode } from "@depute/wire";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Agent, ALPHA, agent, BETA, GAMMA, write } from "./cast.ts";
import { type Platform, register, startPlatform } from "./platform.ts";
import { INVITATION, LINES } from "./scenario.ts";

/**
 * This file sends every message of the scenario with faults. The faults are altered members, a wrong order, a
 * replay, a wrong sender, and a wrong turn. Every wire must refuse the faulty message with its code. The session
 * must stay unchanged and then accept the genuine message.
 */

const CAST = [ALPHA, BETA, GAMMA];
const STRANGER = agent("agent://nobody.example/x/zeta", "org_zeta");
let platform: Platform;
beforeAll(async () => {
  platform = await startPlatform();
  for (const one of CAST) await register(platform, one);
});
afterAll(() => platform.stop());

/** A wire to which messages are sent. */
interface Door {
  /**
   * Sends a document of any form unchanged. Returns `appended`, the refusal's code, or the refusal's reason if
   * the refusal has no code.
   */
  offer(document: JsonObject, sessionId: string): Promise<string>;
  close(): void;
}

const codeOf = ({ metadata, reason }: JsonObject): string => {
  const { code } = (metadata ?? {}) as JsonObject;
  return typeof code === "string" ? code : String(reason);
};

async function httpDoor(): Promise<Door> {
  return {
    async offer(document, sessionId) {
      const path = sessionId === "" ? "" : `/${sessionId}/messages`;
      const response = await fetch(`${platform.url}/v1/asp/sessions${path}`, {
        method: "POST",
        headers: { "content-type": "application/asp+json" },
        body: JSON.stringify(document),
      });
      const body = (await response.json()) as JsonObject;
      return response.ok ? "appended" : codeOf(body.error as JsonObject);
    },
    close: () => {},
  };
}

async function grpcDoor(): Promise<Door> {
  const { sessions } = platform;
  return {
    async offer(document, sessionId) {
      const decoded = decodeValid(EnvelopeSchema, document);
      if (!decoded.ok) return "INVALID_REQUEST";
      const envelope = decoded.message;
      const call =
        sessionId === ""
          ? sessions.createSession({ invitation: envelope })
          : sessions.appendMessage({ envelope });
      return call.then(
        () => "appended",
        (thrown: unknown) => {
          const { reason, metadata } = fromConnectError(thrown);
          return metadata.code ?? reasonName(reason);
        },
      );
    },
    close: () => {},
  };
}

async function socketDoor(): Promise<Door> {
  const http = await httpDoor();
  let socket: WebSocket | undefined;
  let onFrame: (frame: JsonObject) => void = () => {};
  const next = () =>
    new Promise<JsonObject>((resolve) => {
      onFrame = resolve;
    });
  const connect = async (sessionId: string): Promise<WebSocket> => {
    const opened = new WebSocket(`${platform.url.replace("http", "ws")}/v1/asp/sessions/${sessionId}/ws`);
    opened.onmessage = ({ data }) => {
      const frame = JSON.parse(String(data)) as JsonObject;
      if (["auth_ok", "ack", "error"].includes(String(frame.type))) onFrame(frame);
    };
    await new Promise<void>((resolve) => {
      opened.onopen = () => resolve();
    });
    const answer = next();
    opened.send(JSON.stringify({ type: "auth" }));
    expect((await answer).type).toBe("auth_ok");
    return opened;
  };
  return {
    async offer(document, sessionId) {
      if (sessionId === "") return http.offer(document, sessionId);
      socket ??= await connect(sessionId);
      const answer = next();
      socket.send(JSON.stringify({ type: "send", message: document }));
      const { type, error } = await answer;
      return type === "ack" ? "appended" : codeOf(error as JsonObject);
    },
    close: () => socket?.close(),
  };
}

const documentOf = (envelope: Envelope) => encode(EnvelopeSchema, envelope) as JsonObject;

interface Altered {
  readonly path: string;
  readonly document: JsonObject;
}

/**
 * Yields the altered copies of a document: each member altered, each member left out, and one member added to each
 * object.
 */
function* alterations(document: JsonObject): Generator<Altered> {
  function* within(
    value: JsonValue,
    path: string,
  ): Generator<{ path: string; change: JsonValue | undefined }> {
    if (value === null || typeof value !== "object") {
      if (typeof value === "boolean") yield { path, change: !value };
      else if (typeof value === "number") yield { path, change: value + 1 };
      else if (typeof value === "string") yield { path, change: otherText(value) };
      return;
    }
    if (!Array.isArray(value)) yield { path, change: { ...value, added: "member" } };
    for (const [name, member] of Object.entries(value)) {
      yield { path: `${path}/${name}`, change: undefined };
      yield* within(member as JsonValue, `${path}/${name}`);
    }
  }
  for (const { path, change } of within(document, "")) {
    const copy = structuredClone(document);
    yield { path, document: path === "" ? (change as JsonObject) : replaced(copy, path, change) };
  }
}

/** Returns another text of the same shape: the last digit becomes another digit, or the last letter another letter. */
function otherText(text: string): string {
  const at = text.search(/[0-9a-zA-Z][^0-9a-zA-Z]*$/);
  if (at < 0) return `${text}x`;
  const letter = text[at] ?? "";
  const other = /[0-9]/.test(letter) ? String((Number(letter) + 1) % 10) : letter === "b" ? "a" : "b";
  return `${text.slice(0, at)}${other}${text.slice(at + 1)}`;
}

function replaced(document: JsonObject, path: string, change: JsonValue | undefined): JsonObject {
  const names = path.split("/").slice(1);
  const last = names.pop() ?? "";
  let place = document as unknown as Record<string, unknown> | unknown[];
  for (const name of names) place = (place as Record<string, unknown>)[name] as Record<string, unknown>;
  if (change !== undefined) (place as Record<string, unknown>)[last] = change;
  else if (Array.isArray(place)) place.splice(Number(last), 1);
  else delete place[last];
  return document;
}

/** Returns the refusal codes of which an altered message must get one. */
function expected({ path, document }: Altered, original: JsonObject, isFirst: boolean): readonly string[] {
  if (!decodeValid(EnvelopeSchema, document).ok) return ["INVALID_REQUEST", "UNKNOWN_MEMBER"];
  if (path === "/sessionId") return isFirst ? ["wrong_hash"] : ["SESSION_NOT_FOUND", "INVALID_REQUEST"];
  if (path === "/integrity/signature") return ["bad_signature"];
  if (path === "/sender/agentId") return isFirst ? ["AGENT_NOT_FOUND"] : ["not_a_participant"];
  if (isFirst && path === "/performative") return ["wrong_hash", "wrong_state"];
  if (isFirst && path.startsWith("/recipient")) return ["AGENT_NOT_FOUND", "wrong_hash", "unknown_agent"];
  if (path === "/messageId" || path === "/timestamp") return ["wrong_hash", "malformed", "clock_skew"];
  if (JSON.stringify(document) === JSON.stringify(original)) return ["the alteration altered nothing"];
  return ["wrong_hash"];
}

test.each([
  ["http", httpDoor],
  ["grpc", grpcDoor],
  ["websocket", socketDoor],
] as const)("over %s", { timeout: 120_000 }, async (_, open) => {
  const door = await open();
  const sessionId = newId();
  const { sessions } = platform;
  const read = async (): Promise<Session> => {
    const { session } = await sessions.getSession({ sessionId });
    if (session === undefined) throw new Error("no session");
    return session;
  };
  // The session according to the protocol's own rules. The platform's session must match it after every message.
  let mirror: Mirror = idleSession(sessionId, Date.now());
  // The agents' scores at the time when the session's messages arrive. Outcomes of other sessions may change them at
  // any time.
  const scores = new Map<string, number>();
  const knownAgent = (uri: string) => {
    const one = CAST.find((each) => each.uri === uri);
    return one && { key: one.key, trustScore: scores.get(uri) ?? 0 };
  };
  const verdictOf = (envelope: Envelope) =>
    append(mirror, envelope, { nowMs: Date.now(), engine, agent: knownAgent, hasMessage: () => false });

  const lines = [INVITATION, ...LINES];
  const envelopes: Envelope[] = [];
  let refusals = 0;
  for (const [index, [who, performative, body, state, recipient]] of lines.entries()) {
    const isFirst = index === 0;
    const session: Session | { sessionId: string } = isFirst ? { sessionId } : await read();
    const place = isFirst ? "" : sessionId;
    const compose = (by: Agent, line = lines[index], seed = by.seed) => {
      const [, what, content, , to] = line ?? [];
      if (what === undefined || content === undefined) throw new Error("no such line");
      return write({ ...by, seed }, what, content, session, to);
    };
    const genuine = write(who, performative, body, session, recipient);
    const refuse = async (document: JsonObject, codes: readonly string[], attack: string) => {
      const outcome = await door.offer(document, place);
      expect(codes, `${performative} ${index}: ${attack}: ${outcome}`).toContain(outcome);
      refusals += 1;
    };

    for (const altered of alterations(documentOf(genuine))) {
      await refuse(
        altered.document,
        expected(altered, documentOf(genuine), isFirst),
        `altered ${altered.path}`,
      );
    }
    for (const other of CAST.filter((one) => one !== who)) {
      await refuse(
        documentOf(compose(who, lines[index], other.seed)),
        ["bad_signature"],
        "another's signature",
      );
    }
    if (!isFirst) {
      await refuse(documentOf(compose(STRANGER)), ["not_a_participant"], "a stranger");
      // Earlier messages are sent again. A sender's latest message is acknowledged again; each earlier one is
      // refused.
      for (const [at, old] of envelopes.entries()) {
        const later = envelopes.slice(at + 1).some(({ sender }) => sender?.agentId === old.sender?.agentId);
        if (later) await refuse(documentOf(old), ["duplicate_message"], `replay of message ${at}`);
        else expect(await door.offer(documentOf(old), place), `repetition of message ${at}`).toBe("appended");
      }
      // Sends the scenario's next message too early: before the current one.
      const next = lines[index + 1];
      if (next !== undefined) {
        const [speaker] = next;
        const early = compose(speaker, next);
        const previousHash = genuine.integrity?.hash ?? "";
        const integrity = { ...early.integrity, previousHash } as NonNullable<Envelope["integrity"]>;
        const chained = seal(engine, { ...early, integrity }, speaker.seed);
        const isThere = mirror.parties.some(({ agentId }) => agentId === speaker.uri);
        await refuse(documentOf(chained), [isThere ? "head_moved" : "not_a_participant"], "too early");
      }
      // Every party sends every message of the scenario at this point. The forbidden ones must be refused.
      for (const by of CAST) {
        for (const [at, line] of lines.entries()) {
          if (at === index && by === who) continue;
          const envelope = compose(by, line);
          const verdict = verdictOf(envelope);
          if (verdict.ok) continue;
          await refuse(documentOf(envelope), [verdict.refusal.code], `line ${at} by ${by.uri}`);
        }
      }
      const { lastHash, messageCount } = await read();
      expect([lastHash, messageCount]).toEqual([mirror.lastHash, index]);
    }

    expect(await door.offer(documentOf(genuine), place), `${performative} ${index}`).toBe("appended");
    const after = await read();
    for (const { agentId, trustScore = 0 } of after.participants) scores.set(agentId, trustScore);
    const verdict = verdictOf(genuine);
    if (!verdict.ok) throw new Error(verdict.refusal.detail);
    mirror = verdict.session;
    envelopes.push(genuine);
    expect(after.state).toBe(state);
  }
  door.close();
  expect(refusals).toBeGreaterThan(1000);
});
