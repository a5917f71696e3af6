import type { DescMessage, JsonValue, MessageShape } from "@bufbuild/protobuf";
import type { CallOptions } from "@connectrpc/connect";
import { stateName } from "@depute/asp";
import { AgentCardSchema } from "@depute/contracts/asp/v0/agent_card_pb";
import { DisputeSchema } from "@depute/contracts/asp/v0/dispute_pb";
import { type Envelope, EnvelopeSchema, Performative } from "@depute/contracts/asp/v0/envelope_pb";
import { EvidenceSchema } from "@depute/contracts/asp/v0/evidence_pb";
import { SessionSchema } from "@depute/contracts/asp/v0/session_pb";
import {
  TranscriptEntrySchema,
  TranscriptKeysSchema,
  TranscriptSchema,
} from "@depute/contracts/asp/v0/transcript_pb";
import { DeputeError, ErrorReason, invalid } from "@depute/core";
import {
  type BodyLimits,
  type HttpRequest,
  type HttpResponse,
  type HttpRoute,
  mediaTypeOf,
  ownHeaders,
  type PathParameters,
  sendBytes,
  sendJson,
  sendText,
  takeBody,
} from "@depute/service";
import { decodeValid, encode, parseJson, refusalOf } from "@depute/wire";
import { admitted } from "../../src/admitted.ts";
import type { Clients } from "../../src/clients.ts";
import type { WireDeps } from "../../src/json-rpc-route.ts";
import { type SseEvent, sendEvents } from "../../src/sse.ts";
import { type WireCall, wireCall } from "../../src/wire-call.ts";
import { cardOf, discoverCards } from "./cards.ts";
import { toAspError } from "./errors.ts";
import { toSse, toWorkSse } from "./events.ts";
import { SOCKET_PATH } from "./live.ts";
import { ASP_MSGPACK, parseMsgpack, toMsgpack } from "./msgpack.ts";

/** The type of ASP's documents; plain JSON is taken too, and given to who asks for nothing else. */
const ASP_JSON = "application/asp+json";
const ASP_TYPES = [ASP_JSON, "application/json", ASP_MSGPACK];

/** A request as the methods of this wire see it. */
interface Asked {
  readonly parameters: PathParameters;
  readonly query: URLSearchParams;
  readonly call: WireCall;
  /** The document of the body. */
  read<Desc extends DescMessage>(schema: Desc): Promise<MessageShape<Desc>>;
}

/** What is answered, with its HTTP status. */
interface Answer {
  readonly status: number;
  readonly body: JsonValue;
}

type Method = (asked: Asked) => Promise<Answer>;

/** The ASP wire: sessions and cards over HTTP, live messages as server-sent events. (ASP transports "HTTP/SSE") */
// biome-ignore lint/complexity/noExcessiveLinesPerFunction: a table of routes, each with a few lines of its own
export function aspRoutes(clients: Clients, deps: WireDeps): HttpRoute[] {
  const { aspSessions: sessions } = clients;
  const ok = (body: JsonValue, status = 200): Answer => ({ status, body });

  const send = async (envelope: Envelope, { call }: Asked): Promise<Answer> => {
    const { ordinal, state, lastHash } = await sessions.appendMessage({ envelope }, call.asCaller);
    return ok({ messageId: envelope.messageId, ordinal, state: stateName(state), lastHash }, 201);
  };

  const routes: Readonly<Record<string, Readonly<Record<string, Method>>>> = {
    "/v1/asp/discover": {
      GET: async ({ query, call }) => {
        const cards = await discoverCards(clients, query, call);
        return ok({ agents: cards.map((card) => encode(AgentCardSchema, card)) });
      },
    },
    "/v1/asp/agents/{id}/card": {
      GET: async ({ parameters: { id = "" }, call }) =>
        ok(encode(AgentCardSchema, await cardOf(clients, id, call))),
    },
    "/v1/asp/sessions": {
      POST: async ({ read, call }) => {
        const { session } = await sessions.createSession(
          { invitation: await read(EnvelopeSchema) },
          call.asCaller,
        );
        return ok(encode(SessionSchema, present(session)), 201);
      },
      GET: async ({ query, call }) => {
        const page = await sessions.listSessions(pageOf(query), call.asCaller);
        return ok({
          sessions: page.sessions.map((session) => encode(SessionSchema, session)),
          ...(page.nextPageToken === "" ? {} : { nextCursor: page.nextPageToken }),
        });
      },
    },
    "/v1/asp/sessions/{id}": {
      GET: async ({ parameters: { id: sessionId = "" }, call }) => {
        const { session } = await sessions.getSession({ sessionId }, call.asCaller);
        return ok(encode(SessionSchema, present(session)));
      },
      // A session is never removed, and nobody can end it for another: its end is a message too.
      DELETE: async (asked) => {
        const envelope = await asked.read(EnvelopeSchema);
        requireSession(envelope, asked);
        if (envelope.performative !== Performative.CLOSE) throw invalid("performative", "must be CLOSE");
        return { ...(await send(envelope, asked)), status: 200 };
      },
    },
    "/v1/asp/sessions/{id}/messages": {
      POST: async (asked) => {
        const envelope = await asked.read(EnvelopeSchema);
        requireSession(envelope, asked);
        return send(envelope, asked);
      },
      GET: async ({ parameters: { id: sessionId = "" }, query, call }) => {
        const request = { sessionId, afterOrdinal: afterOf(query), pageSize: limitOf(query) };
        const { entries, nextAfterOrdinal } = await sessions.listMessages(request, call.asCaller);
        return ok({
          messages: entries.map((entry) => encode(TranscriptEntrySchema, entry)),
          ...(nextAfterOrdinal === 0 ? {} : { nextCursor: String(nextAfterOrdinal) }),
        });
      },
    },
    "/v1/asp/sessions/{id}/messages/{message}": {
      GET: async ({ parameters: { id: sessionId = "", message: messageId = "" }, call }) => {
        const { entries } = await sessions.listMessages({ sessionId, messageId }, call.asCaller);
        const [entry] = entries;
        if (entry !== undefined) return ok(encode(TranscriptEntrySchema, entry));
        throw new DeputeError(ErrorReason.SESSION_NOT_FOUND, "the session has no such message", {
          metadata: { session: sessionId, message: messageId },
        });
      },
    },
    [WORK]: {
      GET: async () => {
        throw invalid("accept", "must be text/event-stream");
      },
    },
    "/v1/asp/sessions/{id}/delegations/{delegation}/evidence": {
      GET: async ({ parameters: { id: sessionId = "", delegation: delegationId = "" }, call }) => {
        const { evidence } = await sessions.getEvidence({ sessionId, delegationId }, call.asCaller);
        return ok(encode(EvidenceSchema, present(evidence)));
      },
    },
    "/v1/asp/sessions/{id}/disputes": {
      GET: async ({ parameters: { id: sessionId = "" }, call }) => {
        const { disputes } = await sessions.listDisputes({ sessionId }, call.asCaller);
        return ok({ disputes: disputes.map((dispute) => encode(DisputeSchema, dispute)) });
      },
      POST: async (asked) => {
        const dispute = await asked.read(DisputeSchema);
        requireSession(dispute, asked);
        const filed = await sessions.fileDispute({ dispute }, asked.call.asCaller);
        return ok(encode(DisputeSchema, present(filed.dispute)), 201);
      },
    },
    // Published to everybody: whoever has a transcript checks its seal by them.
    "/v1/asp/keys": {
      GET: async ({ call }) => {
        const { keys } = await sessions.getTranscriptKeys({}, own(call));
        return ok(encode(TranscriptKeysSchema, present(keys)));
      },
    },
    "/v1/asp/evidence": {
      GET: async ({ query, call }) => {
        const page = await sessions.listEvidence(pageOf(query), call.asCaller);
        return ok({
          evidence: page.evidence.map((one) => encode(EvidenceSchema, one)),
          ...(page.nextPageToken === "" ? {} : { nextCursor: page.nextPageToken }),
        });
      },
    },
    "/v1/asp/sessions/{id}/transcript": {
      GET: async ({ parameters: { id: sessionId = "" }, call }) => {
        const { transcript } = await sessions.exportTranscript({ sessionId }, call.asCaller);
        return ok(encode(TranscriptSchema, present(transcript)));
      },
    },
  };

  /** What is answered as server-sent events. */
  const live: Readonly<Record<string, LiveMethod>> = {
    [LIVE]: async ({ parameters: { id: sessionId = "" }, query, call }, from) => {
      const request = { sessionId, afterOrdinal: afterOf(query, from), tellState: true };
      const watched = await admitted(sessions.watchSession(request, call.asCaller));
      return toSse(watched, call.requestId);
    },
    [WORK]: async (
      { parameters: { id: sessionId = "", delegation: delegationId = "" }, query, call },
      from,
    ) => {
      const afterSequence = BigInt(afterOf(query, from));
      const request = { sessionId, delegationId, afterSequence, tellStart: true };
      const watched = await admitted(sessions.watchDelegation(request, call.asCaller));
      return toWorkSse(watched, call.requestId);
    },
  };

  const calls = Object.entries(routes).flatMap(([path, methods]) =>
    Object.entries(methods).map(([name, method]) => ({ path, name, method })),
  );
  const plain = calls.map(
    ({ path, name, method }): HttpRoute => ({
      methods: [name],
      path,
      ...(name !== "GET" && { takes: ASP_TYPES }),
      async handle(request, response, parameters) {
        const call = wireCall(request, response, deps.publicUrl);
        const query = new URLSearchParams(request.url?.split("?").slice(1).join("?"));
        if (parameters.id !== undefined && path.startsWith("/v1/asp/sessions")) {
          response.setHeader("asp-session-id", parameters.id);
        }
        try {
          const events = live[path];
          if (events !== undefined && name === "GET" && wantsEvents(request)) {
            const source = await events({ parameters, query, call }, call.lastEventId);
            return await sendEvents(response, source, deps);
          }
          const read = <Desc extends DescMessage>(schema: Desc) => document(request, schema, deps.bodies);
          const { status, body } = await method({ parameters, query, call, read });
          answer(request, response, status, body);
        } catch (thrown) {
          const { status, body } = toAspError(thrown, call.requestId);
          if (status >= 500) deps.log.error({ err: thrown, path, request_id: call.requestId }, "asp");
          else deps.log.info({ path, request_id: call.requestId, reason: body.error.reason }, "asp");
          answer(request, response, status, body);
        }
      },
    }),
  );
  return [
    ...plain,
    { methods: ["GET"], path: SOCKET_PATH, handle: async (_, response) => askForUpgrade(response) },
  ];
}

/** What a request without an upgrade is told at the address of WebSockets. (RFC 9110 15.5.22) */
function askForUpgrade(response: HttpResponse): void {
  // HTTP/2 has no upgrades, and no such header.
  sendText(response, 426, "", "stream" in response ? {} : { upgrade: "websocket", connection: "upgrade" });
}

const LIVE = "/v1/asp/sessions/{id}/messages";
const WORK = "/v1/asp/sessions/{id}/delegations/{delegation}/events";

/** Answers as server-sent events, from the event after `from` on; refused before the stream starts. */
type LiveMethod = (
  asked: Omit<Asked, "read">,
  from: string | undefined,
) => Promise<AsyncGenerator<SseEvent, void, undefined>>;

function wantsEvents({ headers }: HttpRequest): boolean {
  return /(^|,)\s*text\/event-stream\s*($|[,;])/i.test(headers.accept ?? "");
}

function answer(
  { headers }: HttpRequest,
  response: HttpResponse,
  status: number,
  body: JsonValue,
  more: Record<string, string> = {},
): void {
  const type = typeFor(headers);
  if (type === ASP_MSGPACK) sendBytes(response, status, toMsgpack(body), { "content-type": type, ...more });
  else sendJson(response, status, body, { "content-type": type, ...more });
}

/** The type of an answer: what the client accepts, where it names one; MessagePack to who sent it and names none. */
function typeFor({ accept = "", "content-type": sent = "" }: HttpRequest["headers"]): string {
  const accepted = accept.toLowerCase();
  if (accepted.includes(ASP_JSON)) return ASP_JSON;
  if (accepted.includes(ASP_MSGPACK)) return ASP_MSGPACK;
  if (accepted.includes("application/json")) return "application/json";
  return mediaTypeOf(sent) === ASP_MSGPACK ? ASP_MSGPACK : ASP_JSON;
}

async function document<Desc extends DescMessage>(
  request: HttpRequest,
  schema: Desc,
  limits: BodyLimits,
): Promise<MessageShape<Desc>> {
  const bytes = await takeBody(request, ASP_TYPES, limits);
  const isPacked = mediaTypeOf(request.headers["content-type"]) === ASP_MSGPACK;
  const parsed = isPacked ? parseMsgpack(bytes) : parseJson(bytes, { maxBytes: bytes.length });
  if (!parsed.ok) throw refusalOf(parsed.error);
  const decoded = decodeValid(schema, parsed.value);
  if (!decoded.ok) throw refusalOf(...decoded.errors);
  return decoded.message;
}

/** A call of the platform's own, for what is published to everybody, with credentials or without. */
function own({ requestId, signal }: WireCall): CallOptions {
  return { headers: ownHeaders(requestId), signal };
}

/** The address and the document have to name the same session. */
function requireSession({ sessionId }: Pick<Envelope, "sessionId">, { parameters: { id } }: Asked): void {
  if (sessionId !== id) throw invalid("sessionId", "is not the session of the address");
}

/** A page of what is an agent's. */
function pageOf(query: URLSearchParams) {
  return {
    agentId: query.get("agent_id") ?? "",
    pageSize: limitOf(query),
    pageToken: query.get("cursor") ?? "",
  };
}

function limitOf(query: URLSearchParams): number {
  return wholeNumber(query, "limit", 200);
}

/** The place after which to begin: of a page before, of an event before, or as the client counts. */
function afterOf(query: URLSearchParams, lastEventId?: string): number {
  if (lastEventId !== undefined && !query.has("cursor")) {
    return wholeNumber(new URLSearchParams({ "Last-Event-ID": lastEventId }), "Last-Event-ID", 10_000);
  }
  return wholeNumber(query, query.has("cursor") ? "cursor" : "since_sequence", 10_000);
}

function wholeNumber(query: URLSearchParams, name: string, max: number): number {
  const text = query.get(name) ?? "0";
  const value = Number(text);
  if (!/^\d{1,5}$/.test(text) || value > max) throw invalid(name, `is a whole number up to ${max}`);
  return value;
}

function present<T>(value: T | undefined): T {
  if (value === undefined)
    throw new DeputeError(ErrorReason.INTERNAL, "a service answered without its message");
  return value;
}
