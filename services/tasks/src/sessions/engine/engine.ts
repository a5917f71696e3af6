import {
  advance,
  append,
  evidenceReferences,
  exportTranscript,
  idleSession,
  isTerminal,
  objectOf,
  type ProofRules,
  type Proven,
  partyOf,
  type Session,
} from "@depute/asp";
import type { Bus } from "@depute/bus";
import type { Envelope } from "@depute/contracts/asp/v0/envelope_pb";
import type { SessionState } from "@depute/contracts/asp/v0/session_pb";
import type { Transcript } from "@depute/contracts/asp/v0/transcript_pb";
import type { Clock } from "@depute/core";
import { DeputeError, ErrorReason, type Owned, owningOrganization } from "@depute/core";
import { nativeEngine } from "@depute/dct/native";
import type { Store, WriteTx } from "@depute/store";
import { duplicate, refused, replayed, sessionNotFound, unknownEvidence } from "../rules/refusals.ts";
import { findEvidence, insertEvidence, insertUse, tookPart } from "../store/evidence-rows.ts";
import {
  dueSessions,
  earliestSessionDeadline,
  findMessage,
  forgetProofs,
  insertMessage,
  type MessageRow,
  putParty,
  putSession,
  readMessages,
  readParties,
  readSession,
  takeProof,
} from "../store/session-rows.ts";
import { changedWork, noteWork } from "../store/work-rows.ts";
import type { KnownAgent } from "./agents.ts";
import { type KnownSession, KnownSessions } from "./known.ts";
import { RecentMessages } from "./recent.ts";

/** The bus topic that wakes the watchers of a session. The key is the session's id. */
export const SESSION_TOPIC = "sessions";

/** Maximum number of messages in one read for a transcript. */
const EXPORT_BATCH = 500;

export interface AppendedMessage {
  readonly ordinal: number;
  readonly state: SessionState;
  /** The session's state after the message. */
  readonly session: Session;
}

export interface SessionEngineOptions {
  readonly store: Store;
  readonly bus: Bus;
  readonly clock: Clock;
  /** Whether ids of sessions and messages must be UUIDv7. */
  readonly strictIds: boolean;
}

/**
 * Stores and changes sessions. One transaction writes a message and the session's new state. Watchers wake up after the
 * commit.
 */
export class SessionEngine {
  readonly store: Store;
  readonly clock: Clock;
  readonly #bus: Bus;
  readonly #strictIds: boolean;
  /** Whether other replicas append messages at the same time. If so, the engine reads sessions from the store. */
  readonly #isShared: boolean;
  readonly #recent = new RecentMessages();
  readonly #sessions = new KnownSessions();
  #onWork: () => void = () => {};

  constructor({ store, bus, clock, strictIds }: SessionEngineOptions) {
    this.store = store;
    this.#isShared = store.sharing !== undefined;
    this.#strictIds = strictIds;
    this.clock = clock;
    this.#bus = bus;
  }

  /**
   * Finds a session in its current state. Applies passed deadlines to the result, even if their effects are not stored
   * yet.
   */
  async find(sessionId: string): Promise<KnownSession | undefined> {
    // With replicas, another replica may have appended a message after this process cached the session.
    const knownSession = this.#isShared ? undefined : this.#sessions.get(sessionId);
    if (knownSession !== undefined)
      return { ...knownSession, session: advance(knownSession.session, this.clock.now()) };
    return this.store.read(async (tx) => {
      const session = await readSession(tx, sessionId);
      if (session === undefined) return undefined;
      const parties = await readParties(tx, sessionId);
      return { session: advance(session, this.clock.now()), ...parties };
    });
  }

  /**
   * Creates a session with its first message.
   *
   * @throws DeputeError SESSION_ID_TAKEN; for a refused invitation, the reason from `REASONS`
   */
  async create(
    invitation: Envelope,
    agents: readonly KnownAgent[],
    proof: ProofRules | undefined,
    caller: Owned,
  ): Promise<AppendedMessage> {
    return this.#write({ envelope: invitation, agents, proof }, async (tx) => {
      const session = await readSession(tx, invitation.sessionId);
      if (session === undefined) {
        const organization = owningOrganization(caller, undefined);
        const idle = idleSession(invitation.sessionId, this.clock.now());
        return organization === "" ? idle : { ...idle, organization };
      }
      throw new DeputeError(ErrorReason.SESSION_ID_TAKEN, "another session has this id: choose another id", {
        metadata: { session: invitation.sessionId },
      });
    });
  }

  /**
   * Appends a message. Of two messages that name the same previous message, the store accepts the first.
   *
   * @throws DeputeError SESSION_NOT_FOUND; for a refused message, the reason from `REASONS`
   */
  async append(
    envelope: Envelope,
    agents: readonly KnownAgent[],
    proof: ProofRules | undefined,
  ): Promise<AppendedMessage> {
    return this.#write({ envelope, agents, proof }, async (tx) => {
      const session = await readSession(tx, envelope.sessionId);
      if (session === undefined) throw sessionNotFound(envelope.sessionId);
      return session;
    });
  }

  async #write(
    { envelope, agents, proof }: Offer,
    read: (tx: WriteTx) => Promise<Session>,
  ): Promise<AppendedMessage> {
    const { sessionId, messageId } = envelope;
    return this.store
      .write(async (tx) => {
        const repeatedAnswer = await this.#repeated(tx, envelope);
        if (repeatedAnswer !== undefined) return repeatedAnswer;
        const nowMs = this.clock.now();
        const before = await read(tx);
        const result = append(before, envelope, {
          nowMs,
          engine: nativeEngine,
          agent: (agentId) => agents.find((agent) => agent.agentId === agentId),
          // The check for repeated messages has already found no message with this id.
          hasMessage: () => false,
          strictIds: this.#strictIds,
          ...(proof === undefined ? {} : { proof }),
        });
        if (!result.ok) throw refused(result.refusal, result.session);
        const { session, ordinal, proven } = result;
        // This transaction marks the proof as used, so the proof of a refused message stays usable.
        if (proven !== undefined && !(await takeProof(tx, proven))) throw replayed(before);
        const row = { ordinal, receiveMs: nowMs, state: session.state, envelope };
        const bytes = await insertMessage(tx, sessionId, row);
        await putSession(tx, session, before.messageCount === 0 ? undefined : before);
        const came = agents.filter((agent) => partyOf(session, agent.agentId) !== undefined);
        for (const agent of came) await putParty(tx, session, agent);
        const isKnown = came.length === 0 && this.#sessions.get(sessionId) !== undefined;
        const parties = isKnown || this.#isShared ? undefined : await readParties(tx, sessionId);
        await this.#noteUses(tx, before, envelope);
        await this.#noteWork(tx, before, session, nowMs);
        tx.afterCommit(() => {
          if (!this.#isShared) this.#sessions.note(session, parties);
          this.#recent.add(sessionId, row, bytes);
        });
        this.#wakeAfter(tx, sessionId);
        return { ordinal, state: session.state, session };
      })
      .catch((error: unknown) => {
        if (error instanceof DeputeError) error.metadata.message = messageId;
        throw error;
      });
  }

  /**
   * Returns the first response to a repeated message, if the message is still the sender's latest. A sender of a later
   * message already has the response, so the engine refuses the repetition of an older message. The engine also refuses
   * a different message with the same id.
   *
   * @returns undefined if the session has no message with this id
   * @throws DeputeError SESSION_MESSAGE_ID_TAKEN, with the code `duplicate_message`
   */
  async #repeated(
    tx: WriteTx,
    { sessionId, messageId, integrity, sender, sequenceNumber }: Envelope,
  ): Promise<AppendedMessage | undefined> {
    const row = await findMessage(tx, sessionId, messageId);
    if (row === undefined) return undefined;
    const session = await readSession(tx, sessionId);
    if (session === undefined) throw sessionNotFound(sessionId);
    const party = session.parties.find(({ agentId }) => agentId === sender?.agentId);
    const isNewest = sequenceNumber + 1n === BigInt(party?.nextSequence ?? 0);
    if (row.hash !== integrity?.hash || !isNewest) throw duplicate(session);
    return { ordinal: row.ordinal, state: row.state, session };
  }

  /** Returns messages after a position. If the last entry has no message, a deadline ended the session. */
  async messages(sessionId: string, after: number, limit: number): Promise<(MessageRow | Ending)[]> {
    const recent = this.#recent.after(sessionId, after, limit);
    if (recent !== undefined) return recent;
    return this.store.read(async (tx) => {
      const rows: (MessageRow | Ending)[] = await readMessages(tx, sessionId, after, limit);
      if (rows.length >= limit) return rows;
      const session = await readSession(tx, sessionId);
      const endsAt = (session?.messageCount ?? 0) + 1;
      const isByTime = session?.endMs !== undefined && session.end !== undefined && BY_TIME.has(session.end);
      if (session !== undefined && isByTime && after < endsAt)
        rows.push({ ordinal: endsAt, state: session.state });
      return rows;
    });
  }

  /**
   * Returns the session's current transcript, without a seal.
   *
   * @throws DeputeError SESSION_NOT_FOUND
   */
  async transcript({ sessionId }: Session): Promise<Transcript> {
    return this.store.read(async (tx) => {
      const session = await readSession(tx, sessionId);
      if (session === undefined) throw sessionNotFound(sessionId);
      const entries: MessageRow[] = [];
      while (entries.length < session.messageCount) {
        entries.push(...(await readMessages(tx, sessionId, entries.length, EXPORT_BATCH)));
      }
      return exportTranscript(session, entries, this.clock.now());
    });
  }

  /**
   * Stores the effects of deadlines on sessions.
   *
   * @returns whether more sessions may be due
   */
  async applyTime(limit: number): Promise<boolean> {
    const nowMs = this.clock.now();
    const due = await this.store.read((tx) => dueSessions(tx, nowMs, limit));
    if (due.length === 0) return false;
    await this.store.write(async (tx) => {
      for (const sessionId of due) {
        const session = await readSession(tx, sessionId);
        if (session === undefined) continue;
        const later = advance(session, nowMs);
        await putSession(tx, later);
        await this.#noteWork(tx, session, later, nowMs);
        if (!this.#isShared) tx.afterCommit(() => this.#sessions.note(later));
        if (isTerminal(later.state)) this.#wakeAfter(tx, sessionId);
      }
    });
    return due.length >= limit;
  }

  /**
   * Marks a proof as used. The caller sent this proof beside the message, for example in a header.
   *
   * @returns false if the proof was used before
   */
  async useProof(proven: Proven): Promise<boolean> {
    return this.store.write((tx) => takeProof(tx, proven));
  }

  /**
   * Deletes the records of expired proofs, because the service refuses an expired proof anyway.
   *
   * @returns whether more expired proofs may exist
   */
  async forgetProofs(limit: number): Promise<boolean> {
    const nowMs = this.clock.now();
    return (await this.store.write((tx) => forgetProofs(tx, nowMs, limit))) >= limit;
  }

  async earliestDeadline(): Promise<number | undefined> {
    return this.store.read(earliestSessionDeadline);
  }

  /**
   * Sets the listener that the engine calls after each commit of changed delegations. The listener updates the
   * delegations' tasks.
   */
  onWork(listener: () => void): void {
    this.#onWork = listener;
  }

  /** Wakes the watchers of a session. */
  wake(sessionId: string): void {
    this.#bus.publish(SESSION_TOPIC, sessionId);
  }

  /**
   * Records the delegations that a change of their session affects, and the evidence of a delegate's report. Runs
   * in the transaction of that change.
   */
  async #noteWork(tx: WriteTx, before: Session, after: Session, nowMs: number): Promise<void> {
    const changed = changedWork(before, after);
    for (const { delegationId, state } of changed) {
      await noteWork(tx, after.sessionId, delegationId);
      const delegation = objectOf(after, delegationId);
      if (state !== "reported" || delegation?.result === undefined) continue;
      const { ordinal: askedOrdinal, result } = delegation;
      await insertEvidence(tx, after, { delegationId, askedOrdinal, reportOrdinal: result.ordinal }, nowMs);
    }
    if (changed.length > 0) tx.afterCommit(() => this.#onWork());
  }

  /**
   * Records references from a message to evidence of other sessions. An agent may show evidence only of sessions in
   * which it took part.
   *
   * @throws DeputeError SESSION_STATE_CONFLICT, with the code `unknown_evidence`
   */
  async #noteUses(tx: WriteTx, session: Session, envelope: Envelope): Promise<void> {
    for (const place of evidenceReferences(envelope)) {
      const isTheirs = await tookPart(tx, place.sessionId, envelope.sender?.agentId ?? "");
      if (!isTheirs || (await findEvidence(tx, place)) === undefined) throw unknownEvidence(session);
      await insertUse(tx, place, session.sessionId);
    }
  }

  #wakeAfter(tx: WriteTx, sessionId: string): void {
    tx.afterCommit(() => this.#bus.publish(SESSION_TOPIC, sessionId));
  }
}

/** A received message, with the rules for the proof that it contains. */
interface Offer {
  readonly envelope: Envelope;
  readonly agents: readonly KnownAgent[];
  /** The rules for the proof in the message; undefined if the caller has proved its key outside the message. */
  readonly proof: ProofRules | undefined;
}

/** The end of a session by a deadline, without a message. */
export interface Ending {
  /** The position of the end: one after the last message. */
  readonly ordinal: number;
  readonly state: SessionState;
  readonly envelope?: undefined;
}

const BY_TIME: ReadonlySet<NonNullable<Session["end"]>> = new Set([
  "invitation_timeout",
  "idle",
  "expired",
  "close_grace",
]);
