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
import { ownHeaders } from "@depute/service";
import { encode } from "@depute/wire";
import { admitted } from "../../edge/admitted.ts";
import type { Clients } from "../../edge/clients.ts";
import { type Answer, type Events, json, type WireRequest } from "../../edge/route.ts";
import { cardOf, discoverCards } from "./cards.ts";
import { readAsp } from "./documents.ts";
import { toSse, toWorkSse } from "./events.ts";

/**
 * Implements the HTTP addresses of ASP (ASP transports "HTTP/SSE"). Each method throws a DeputeError, such as
 * INVALID_REQUEST, for a malformed request, and forwards the ConnectErrors of the called service.
 */
export class AspMethods {
  readonly #clients: Clients;

  constructor(clients: Clients) {
    this.#clients = clients;
  }

  get #sessions(): Clients["aspSessions"] {
    return this.#clients.aspSessions;
  }

  async discover({ query, call }: WireRequest): Promise<Answer> {
    const cards = await discoverCards(this.#clients, query, call);
    return json({ agents: cards.map((card) => encode(AgentCardSchema, card)) });
  }

  async card({ parameters: { id = "" }, call }: WireRequest): Promise<Answer> {
    return json(encode(AgentCardSchema, await cardOf(this.#clients, id, call)));
  }

  async createSession({ body, call }: WireRequest): Promise<Answer> {
    const invitation = readAsp(EnvelopeSchema, body);
    const { session } = await this.#sessions.createSession({ invitation }, call.asCaller);
    return json(encode(SessionSchema, requireValue(session)), 201);
  }

  async listSessions({ query, call }: WireRequest): Promise<Answer> {
    const page = await this.#sessions.listSessions(pageOf(query), call.asCaller);
    return json({
      sessions: page.sessions.map((session) => encode(SessionSchema, session)),
      ...(page.nextPageToken === "" ? {} : { nextCursor: page.nextPageToken }),
    });
  }

  async getSession({ parameters: { id: sessionId = "" }, call }: WireRequest): Promise<Answer> {
    const { session } = await this.#sessions.getSession({ sessionId }, call.asCaller);
    return json(encode(SessionSchema, requireValue(session)));
  }

  /** Appends the CLOSE message in the body, although the HTTP method is DELETE. The gateway never deletes a session. */
  async closeSession(wireRequest: WireRequest): Promise<Answer> {
    const envelope = readAsp(EnvelopeSchema, wireRequest.body);
    requireSession(envelope, wireRequest);
    if (envelope.performative !== Performative.CLOSE) throw invalid("performative", "must be CLOSE");
    return this.#append(envelope, wireRequest, 200);
  }

  async send(wireRequest: WireRequest): Promise<Answer> {
    const envelope = readAsp(EnvelopeSchema, wireRequest.body);
    requireSession(envelope, wireRequest);
    return this.#append(envelope, wireRequest, 201);
  }

  async #append(envelope: Envelope, { call }: WireRequest, status: number): Promise<Answer> {
    const { sequence, state, lastHash } = await this.#sessions.appendMessage({ envelope }, call.asCaller);
    return json(
      { messageId: envelope.messageId, ordinal: Number(sequence), state: stateName(state), lastHash },
      status,
    );
  }

  async listMessages({ parameters: { id: sessionId = "" }, query, call }: WireRequest): Promise<Answer> {
    const request = { sessionId, afterSequence: BigInt(afterOf(query)), pageSize: limitOf(query) };
    const { entries, nextPageToken } = await this.#sessions.listMessages(request, call.asCaller);
    return json({
      messages: entries.map((entry) => encode(TranscriptEntrySchema, entry)),
      // As in ASP, the cursor is an ordinal, with the same meaning as `since_sequence`.
      ...(nextPageToken === "" ? {} : { nextCursor: String(entries.at(-1)?.ordinal) }),
    });
  }

  async watchMessages({ parameters: { id: sessionId = "" }, query, call }: WireRequest): Promise<Events> {
    const afterSequence = BigInt(afterOf(query, call.lastEventId));
    const request = { sessionId, afterSequence, sendStart: true };
    const watched = await admitted(this.#sessions.watchSession(request, call.asCaller));
    return toSse(watched, call.requestId);
  }

  async getMessage({ parameters, call }: WireRequest): Promise<Answer> {
    const { id: sessionId = "", message: messageId = "" } = parameters;
    const { entries } = await this.#sessions.listMessages({ sessionId, messageId }, call.asCaller);
    const [entry] = entries;
    if (entry !== undefined) return json(encode(TranscriptEntrySchema, entry));
    throw new DeputeError(ErrorReason.SESSION_NOT_FOUND, "the session has no message with this id", {
      metadata: { session: sessionId, message: messageId },
    });
  }

  async watchWork({ parameters, query, call }: WireRequest): Promise<Events> {
    const { id: sessionId = "", delegation: delegationId = "" } = parameters;
    const afterSequence = BigInt(afterOf(query, call.lastEventId));
    const request = { sessionId, delegationId, afterSequence, sendStart: true };
    const watched = await admitted(this.#sessions.watchDelegation(request, call.asCaller));
    return toWorkSse(watched, call.requestId);
  }

  async getEvidence({ parameters, call }: WireRequest): Promise<Answer> {
    const { id: sessionId = "", delegation: delegationId = "" } = parameters;
    const { evidence } = await this.#sessions.getEvidence({ sessionId, delegationId }, call.asCaller);
    return json(encode(EvidenceSchema, requireValue(evidence)));
  }

  async listDisputes({ parameters: { id: sessionId = "" }, call }: WireRequest): Promise<Answer> {
    const { disputes } = await this.#sessions.listDisputes({ sessionId }, call.asCaller);
    return json({ disputes: disputes.map((dispute) => encode(DisputeSchema, dispute)) });
  }

  async fileDispute(wireRequest: WireRequest): Promise<Answer> {
    const dispute = readAsp(DisputeSchema, wireRequest.body);
    requireSession(dispute, wireRequest);
    const filed = await this.#sessions.fileDispute({ dispute }, wireRequest.call.asCaller);
    return json(encode(DisputeSchema, requireValue(filed.dispute)), 201);
  }

  /** Returns the public keys with which readers check the seal of a transcript. Requires no credentials. */
  async keys({ call: { requestId, signal } }: WireRequest): Promise<Answer> {
    const options = { headers: ownHeaders(requestId), signal };
    const { keys } = await this.#sessions.getTranscriptKeys({}, options);
    return json(encode(TranscriptKeysSchema, requireValue(keys)));
  }

  async listEvidence({ query, call }: WireRequest): Promise<Answer> {
    const page = await this.#sessions.listEvidence(pageOf(query), call.asCaller);
    return json({
      evidence: page.evidence.map((one) => encode(EvidenceSchema, one)),
      ...(page.nextPageToken === "" ? {} : { nextCursor: page.nextPageToken }),
    });
  }

  async transcript({ parameters: { id: sessionId = "" }, call }: WireRequest): Promise<Answer> {
    const { transcript } = await this.#sessions.exportTranscript({ sessionId }, call.asCaller);
    return json(encode(TranscriptSchema, requireValue(transcript)));
  }
}

/** Throws DeputeError INVALID_REQUEST unless the address and the document name the same session. */
function requireSession(
  { sessionId }: Pick<Envelope, "sessionId">,
  { parameters: { id } }: WireRequest,
): void {
  if (sessionId !== id) throw invalid("sessionId", "must be the session in the address");
}

/** Reads the agent id, the page size and the cursor from the query of a list request. */
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

/**
 * Returns the ordinal after which a list or a stream begins. The ordinal is the first of these values that the
 * request has: the cursor, the last event id, `since_sequence`. Returns 0 if the request has none of them.
 */
function afterOf(query: URLSearchParams, lastEventId?: string): number {
  if (lastEventId !== undefined && !query.has("cursor")) {
    return wholeNumber(new URLSearchParams({ "Last-Event-ID": lastEventId }), "Last-Event-ID", 10_000);
  }
  return wholeNumber(query, query.has("cursor") ? "cursor" : "since_sequence", 10_000);
}

function wholeNumber(query: URLSearchParams, name: string, max: number): number {
  const text = query.get(name) ?? "0";
  const value = Number(text);
  if (!/^\d{1,5}$/.test(text) || value > max) throw invalid(name, `must be a whole number up to ${max}`);
  return value;
}

function requireValue<T>(value: T | undefined): T {
  if (value === undefined)
    throw new DeputeError(ErrorReason.INTERNAL, "a service answered without its message");
  return value;
}
