import { create } from "@bufbuild/protobuf";
import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import { isTerminal, objectOf, recipientOf, type Session, type TranscriptVerdict, viewOf } from "@depute/asp";
import { DisputeSchema } from "@depute/contracts/asp/v0/dispute_pb";
import { type Envelope, Performative } from "@depute/contracts/asp/v0/envelope_pb";
import { SessionSchema } from "@depute/contracts/asp/v0/session_pb";
import { type TranscriptEntry, TranscriptEntrySchema } from "@depute/contracts/asp/v0/transcript_pb";
import {
  type SessionService,
  TranscriptSealStatus,
} from "@depute/contracts/depute/tasks/v1/session_service_pb";
import {
  type Clock,
  DeputeError,
  decodePageToken,
  ErrorReason,
  encodePageToken,
  formatTime,
  invalid,
  pageSize,
  type Timers,
} from "@depute/core";
import {
  bytesOf,
  cutPage,
  follow,
  type Identity,
  linkSignals,
  mayActFor,
  ownOptions,
  pageOfList,
  type WakeUps,
} from "@depute/service";
import type { TaskEngine } from "../../core/index.ts";
import { type Agents, agentNotFound, type KnownAgent } from "../engine/agents.ts";
import type { Ending, SessionEngine } from "../engine/engine.ts";
import type { KnownSession } from "../engine/known.ts";
import type { MessageRates } from "../engine/rates.ts";
import { delegationNotFound, sessionNotFound } from "../rules/refusals.ts";
import { findMessage, listSessions, type MessageRow, readMessages } from "../store/session-rows.ts";
import { watchWork } from "../work/watch-work.ts";
import type { Callers, Candidate } from "./callers.ts";
import { fileDispute, readDisputes } from "./disputes.ts";
import { evidencePage, readEvidence } from "./evidence.ts";
import type { Transcripts } from "./transcripts.ts";

export interface SessionsContext {
  readonly engine: SessionEngine;
  readonly agents: Agents;
  readonly callers: Callers;
  readonly rates: MessageRates;
  readonly transcripts: Transcripts;
  /** The task engine. Work that a session delegates runs as a task. */
  readonly tasks: TaskEngine;
  readonly clock: Clock;
  readonly timers: Timers;
  readonly wakeUps: WakeUps;
  /** Milliseconds between two polls of a stream, for changes without a wake-up. */
  readonly pollMs: number;
  /** Aborts when the process drains. */
  readonly stopping: AbortSignal;
}

/** Maximum number of messages that a watcher holds in memory. */
const WATCH_BATCH = 32;

/** Handles the calls of SessionService, which agents make. */
// biome-ignore lint/complexity/noExcessiveLinesPerFunction: a table of methods, each with a few lines of its own
export function sessionService(sessions: SessionsContext): ServiceImpl<typeof SessionService> {
  const { engine, agents, callers, rates, transcripts, tasks, clock } = sessions;

  /** Finds the agent with this URI as a possible caller, even if the registry hides the agent from other viewers. */
  const themselves = (context: HandlerContext, uri: string) => async (): Promise<Candidate[]> => {
    const agent = await agents.find(uri, "", ownOptions(context, clock));
    return agent === undefined ? [] : [agent];
  };

  const participants = (sessionId: string) => async (): Promise<Candidate[]> => {
    const knownSession = await engine.find(sessionId);
    return (knownSession?.session.parties ?? []).map((party) => ({
      ...party,
      principal: knownSession?.principals.get(party.agentId) ?? "",
    }));
  };

  /** Returns the session of a call, if the session is visible to the caller. */
  const requireVisible = async (sessionId: string, context: HandlerContext): Promise<KnownSession> =>
    visible(sessions, await callers.identify(context, participants(sessionId)), sessionId);

  /**
   * Finds the agents that join a session by a message. Omits agents that the caller may not see, and agents without
   * a card or a key.
   */
  const newcomers = async (
    uris: readonly string[],
    { principal }: Identity,
    context: HandlerContext,
  ): Promise<KnownAgent[]> => {
    const options = ownOptions(context, clock);
    const found = await Promise.all(uris.map((uri) => agents.find(uri, principal, options)));
    return found.filter((agent) => agent !== undefined);
  };

  return {
    async createSession({ invitation }, context) {
      const envelope = required(invitation, "invitation");
      const sender = senderOf(envelope);
      const identity = await callers.identify(context, themselves(context, sender), envelope);
      const parties = await newcomers(
        [...new Set([sender, recipientOf(envelope) ?? sender])],
        identity,
        context,
      );
      const speaker = parties.find(({ agentId }) => agentId === sender);
      requireSpeaker(identity, speaker?.principal, sender);
      await rates.take(sender, speaker?.level ?? 0);
      const { session } = await engine.create(envelope, parties, callers.messageProof(context), identity);
      return { session: viewOf(session) };
    },

    async appendMessage(request, context) {
      const envelope = required(request.envelope, "envelope");
      const identity = await callers.identify(context, participants(envelope.sessionId), envelope);
      const { principals, levels } = await visible(sessions, identity, envelope.sessionId);
      const sender = senderOf(envelope);
      const senderPrincipal = principals.get(sender);
      if (senderPrincipal !== undefined) {
        requireSpeaker(identity, senderPrincipal, sender);
        await rates.take(sender, levels.get(sender) ?? 0);
      }
      const body = envelope.content?.body?.kind;
      const target = body?.case === "delegate" ? [body.value.targetAgent] : [];
      const coming = await newcomers(target, identity, context);
      // Checks the delegator's policy. ASP's rules later refuse an unknown target, and a sender outside the session.
      if (body?.case === "delegate" && senderPrincipal !== undefined) {
        for (const { registryId } of coming) {
          const options = ownOptions(context, clock);
          await tasks.requireAllowed(senderPrincipal, registryId, body.value.scope, options);
        }
      }
      const proof = callers.messageProof(context);
      const { ordinal, state, session } = await engine.append(envelope, coming, proof);
      return { sequence: BigInt(ordinal), state, lastHash: session.lastHash };
    },

    async getSession({ sessionId }, context) {
      const { session } = await requireVisible(sessionId, context);
      return { session: viewOf(session) };
    },

    async listSessions({ agentId, pageSize: size, pageToken }, context) {
      const identity = await callers.identify(context, themselves(context, agentId));
      const agent = await agents.find(agentId, identity.principal, ownOptions(context, clock));
      if (agent === undefined) throw agentNotFound(agentId);
      requireSpeaker(identity, agent.principal, agentId);
      const [createMs, sessionId] = decodePageToken(pageToken, { agentId }) ?? [];
      const after =
        typeof createMs === "number" && typeof sessionId === "string" ? { createMs, sessionId } : undefined;
      const limit = pageSize(size);
      const sessionRows = await engine.store.read((tx) => listSessions(tx, agentId, after, limit + 1));
      const views = sessionRows.map((session) => ({ session, view: viewOf(session, false) }));
      const { items: page, more } = cutPage(views, limit, ({ view }) => bytesOf(SessionSchema, view));
      const last = more ? page.at(-1)?.session : undefined;
      return {
        sessions: page.map(({ view }) => view),
        nextPageToken:
          last === undefined ? "" : encodePageToken([last.createMs, last.sessionId], { agentId }),
      };
    },

    async listMessages({ sessionId, afterSequence, pageSize: size, pageToken, messageId }, context) {
      const { session } = await requireVisible(sessionId, context);
      if (messageId !== "") {
        const entry = await engine.store.read(async (tx) => {
          const messageRow = await findMessage(tx, sessionId, messageId);
          return messageRow && (await readMessages(tx, sessionId, messageRow.ordinal - 1, 1))[0];
        });
        return { entries: entry === undefined ? [] : [entryOf(entry)].filter((one) => one !== undefined) };
      }
      const filters = { list: "messages", sessionId, after: afterSequence };
      const [position] = decodePageToken(pageToken, filters) ?? [];
      const rows = await engine.messages(sessionId, Number(position ?? afterSequence), pageSize(size));
      const entryList = rows.flatMap((row) => entryOf(row) ?? []);
      const { items: entries } = cutPage(entryList, entryList.length, (entry) =>
        bytesOf(TranscriptEntrySchema, entry),
      );
      const last = entries.at(-1)?.ordinal ?? 0;
      const more = last > 0 && last < session.messageCount;
      return { entries, nextPageToken: more ? encodePageToken([last], filters) : "" };
    },

    async *watchSession({ sessionId, afterSequence, sendStart }, context) {
      const identity = await callers.identify(context, participants(sessionId));
      const { session } = await visible(sessions, identity, sessionId);
      if (afterSequence > session.messageCount) {
        throw invalid("after_sequence", `is beyond the newest message, which is ${session.messageCount}`);
      }
      if (sendStart) yield { state: session.state, session: viewOf(session, false) };
      for await (const row of watch(sessions, session, Number(afterSequence), context)) {
        const entry = entryOf(row);
        yield {
          state: row.state,
          ...(entry === undefined ? {} : { entry, sequence: BigInt(entry.ordinal) }),
        };
        if (LEAVING.has(entry?.envelope?.performative)) await visible(sessions, identity, sessionId);
      }
    },

    async exportTranscript({ sessionId }, context) {
      const { session } = await requireVisible(sessionId, context);
      return { transcript: await transcripts.export(session, ownOptions(context, clock)) };
    },

    async *watchDelegation({ sessionId, delegationId, afterSequence, sendStart }, context) {
      const { session } = await requireVisible(sessionId, context);
      const place = { sessionId, delegationId };
      if (objectOf(session, delegationId)?.kind !== "delegation") throw delegationNotFound(place);
      if (sendStart) yield {};
      for await (const taskEvent of watchWork(sessions, place, afterSequence, context)) yield { taskEvent };
    },

    async getEvidence({ sessionId, delegationId }, context) {
      const identity = await callers.identify(context, participants(sessionId));
      return { evidence: await readEvidence(engine, identity, { sessionId, delegationId }) };
    },

    async listEvidence({ agentId, pageSize: size, pageToken }, context) {
      const identity = await callers.identify(context, themselves(context, agentId));
      const agent = await agents.find(agentId, identity.principal, ownOptions(context, clock));
      if (agent === undefined) throw agentNotFound(agentId);
      requireSpeaker(identity, agent.principal, agentId);
      return evidencePage(engine, agentId, size, pageToken);
    },

    async fileDispute(request, context) {
      const dispute = required(request.dispute, "dispute");
      const { sessionId, filedBy } = dispute;
      const identity = await callers.identify(context, participants(sessionId));
      const { session, principals } = await visible(sessions, identity, sessionId);
      const filerPrincipal = principals.get(filedBy);
      if (filerPrincipal !== undefined) requireSpeaker(identity, filerPrincipal, filedBy);
      return { dispute: await fileDispute(engine.store, session, dispute) };
    },

    async listDisputes(request, context) {
      const { sessionId } = request;
      const { session } = await requireVisible(sessionId, context);
      const page = pageOfList(
        await readDisputes(engine.store, session),
        request,
        { list: "disputes", sessionId },
        ({ disputeId }) => disputeId,
        (dispute) => bytesOf(DisputeSchema, dispute),
      );
      return { disputes: page.items, nextPageToken: page.nextPageToken };
    },

    async verifyTranscript({ transcript }, context) {
      await callers.identify(context, async () => []);
      const options = ownOptions(context, clock);
      const verdict = await transcripts.verify(required(transcript, "transcript"), options);
      const { state } = verdict.session;
      const seal = sealStatus(verdict);
      if (verdict.ok) return { valid: true, state, seal };
      const { code, detail, ordinal } = verdict;
      return { valid: false, state, code, detail, ordinal, seal };
    },

    async getTranscriptKeys(_request, context) {
      await callers.identify(context, async () => []);
      return { keys: await transcripts.keys(ownOptions(context, clock)) };
    },
  };
}

/** Yields the messages of a session after a position, then new messages, until the session ends. */
async function* watch(
  { engine, wakeUps, timers, pollMs, stopping }: SessionsContext,
  { sessionId, state, messageCount, end }: Session,
  after: number,
  context: Pick<HandlerContext, "signal">,
): AsyncGenerator<MessageRow | Ending, void, undefined> {
  if (
    isTerminal(state) &&
    after === messageCount &&
    (end === "closed" || end === "rejected" || end === "withdrawn")
  ) {
    return;
  }
  const link = linkSignals(context.signal, stopping);
  try {
    yield* follow({
      read: (position, limit) => engine.messages(sessionId, position, limit),
      position: ({ ordinal }) => ordinal,
      after,
      wake: (listener) => wakeUps.on(sessionId, listener),
      pollMs,
      timers,
      signal: link.signal,
      isLast: (row) => isTerminal(row.state),
      batch: WATCH_BATCH,
    });
  } finally {
    link.release();
  }
}

/**
 * Returns a session in which the caller takes part or to which the caller is invited. An agent that left the session no
 * longer sees it.
 *
 * @throws DeputeError SESSION_NOT_FOUND
 */
async function visible(
  { engine }: SessionsContext,
  identity: Identity,
  sessionId: string,
): Promise<KnownSession> {
  const knownSession = await engine.find(sessionId);
  const isParticipant = knownSession?.session.parties.some(
    ({ agentId, presence }) =>
      presence !== "left" && mayActFor(identity, knownSession.principals.get(agentId) ?? ""),
  );
  if (knownSession === undefined || isParticipant !== true) throw sessionNotFound(sessionId);
  return knownSession;
}

/**
 * Performatives that may end the watching agent's part in the session. After such a message, the service checks the
 * agent's access again.
 */
const LEAVING: ReadonlySet<Performative | undefined> = new Set([
  Performative.WITHDRAW,
  Performative.REJECT,
  Performative.CLOSE,
]);

/** Returns the status of a seal. If a message is invalid, returns UNSPECIFIED. */
function sealStatus(verdict: TranscriptVerdict): TranscriptSealStatus {
  const { UNSPECIFIED, UNSEALED, SEALED, WRONG } = TranscriptSealStatus;
  if (verdict.ok) return verdict.seal === "sealed" ? SEALED : UNSEALED;
  return verdict.code === "wrong_seal" || verdict.code === "unknown_seal_key" ? WRONG : UNSPECIFIED;
}

function requireSpeaker(identity: Identity, principal: string | undefined, agentId: string): void {
  if (principal === undefined) throw agentNotFound(agentId);
  if (mayActFor(identity, principal)) return;
  throw new DeputeError(ErrorReason.CALLER_NOT_ALLOWED, "the caller may not act for this agent", {
    metadata: { agent: agentId },
  });
}

function entryOf(row: MessageRow | Ending): TranscriptEntry | undefined {
  if (row.envelope === undefined) return undefined;
  const { ordinal, envelope } = row;
  return create(TranscriptEntrySchema, { ordinal, receivedAt: formatTime(row.receiveMs), envelope });
}

function senderOf({ sender }: Envelope): string {
  return sender?.agentId ?? "";
}

function required<T>(value: T | undefined, field: string): T {
  if (value === undefined) throw invalid(field, "is required");
  return value;
}
