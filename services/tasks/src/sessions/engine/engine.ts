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
import { DeputeError, ErrorReason } from "@depute/core";
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

/** Wakes the watchers of a session; the key is its id. */
export const SESSION_TOPIC = "sessions";

/** Messages read at once for a transcript. */
const EXPORT_BATCH = 500;

export interface AppendedMessage {
  readonly ordinal: number;
  readonly state: SessionState;
  /** The session now. */
  readonly session: Session;
}

export interface SessionEngineOptions {
  readonly store: Store;
  readonly bus: Bus;
  readonly clock: Clock;
  /** Whether ids have to be UUIDv7. */
  readonly strictIds: boolean;
}

/** Keeps sessions: message and state in one transaction, wake-ups after it. */
export class SessionEngine {
  readonly store: Store;
  readonly clock: Clock;
  readonly #bus: Bus;
  readonly #strictIds: boolean;
  readonly #recent = new RecentMessages();
  readonly #known = new KnownSessions();
  #onWork: () => void = () => {};

  constructor({ store, bus, clock, strictIds }: SessionEngineOptions) {
    this.store = store;
    this.#strictIds = strictIds;
    this.clock = clock;
    this.#bus = bus;
  }

  /** The session as it is now, whether or not what time did to it is stored already. */
  async find(sessionId: string): Promise<KnownSession | undefined> {
    const known = this.#known.get(sessionId);
    if (known !== undefined) return { ...known, session: advance(known.session, this.clock.now()) };
    return this.store.read(async (tx) => {
      const session = await readSession(tx, sessionId);
      if (session === undefined) return undefined;
      const parties = await readParties(tx, sessionId);
      return { session: advance(session, this.clock.now()), ...parties };
    });
  }

  /** Opens a session by its first message; that of one that is there is an append like any other. */
  async create(
    invitation: Envelope,
    agents: readonly KnownAgent[],
    proof: ProofRules | undefined,
  ): Promise<AppendedMessage> {
    return this.#write({ envelope: invitation, agents, proof }, async (tx) => {
      const session = await readSession(tx, invitation.sessionId);
      if (session === undefined) return idleSession(invitation.sessionId, this.clock.now());
      throw new DeputeError(ErrorReason.SESSION_ID_TAKEN, "there is a session with this id", {
        metadata: { session: invitation.sessionId },
      });
    });
  }

  /**
   * Appends a message. Its place is decided here: of two that name the same newest message the second is refused.
   *
   * @throws DeputeError as refused, SESSION_NOT_FOUND
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
        const known = await this.#repeated(tx, envelope);
        if (known !== undefined) return known;
        const nowMs = this.clock.now();
        const before = await read(tx);
        const result = append(before, envelope, {
          nowMs,
          engine: nativeEngine,
          agent: (agentId) => agents.find((agent) => agent.agentId === agentId),
          // A message of this id would have been found above.
          hasMessage: () => false,
          strictIds: this.#strictIds,
          ...(proof === undefined ? {} : { proof }),
        });
        if (!result.ok) throw refused(result.refusal, result.session);
        const { session, ordinal, proven } = result;
        // In the same transaction, so that a proof is used up by the one message that it brought in, and by no refused one.
        if (proven !== undefined && !(await takeProof(tx, proven))) throw replayed(before);
        const row = { ordinal, receiveMs: nowMs, state: session.state, envelope };
        const bytes = await insertMessage(tx, sessionId, row);
        await putSession(tx, session, before.messageCount === 0 ? undefined : before);
        const came = agents.filter((agent) => partyOf(session, agent.agentId) !== undefined);
        for (const agent of came) await putParty(tx, session, agent);
        const isKnown = came.length === 0 && this.#known.get(sessionId) !== undefined;
        const parties = isKnown ? undefined : await readParties(tx, sessionId);
        await this.#noteUses(tx, before, envelope);
        await this.#noteWork(tx, before, session, nowMs);
        tx.afterCommit(() => {
          this.#known.note(session, parties);
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
   * The first answer to a message that comes again, while it is its sender's newest: whoever sends another one has had that
   * answer, so what comes then is a replay. Another message of the same id is refused as well.
   *
   * @throws DeputeError SESSION_MESSAGE_ID_TAKEN duplicate_message
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
    return { ordinal: row.ordinal, state: row.state as SessionState, session };
  }

  /** Messages after a place; one without a message tells that the session has ended by time. */
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

  /** The transcript now, without its seal. */
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

  /** Stores what time did to sessions. @returns whether there may be more */
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
        tx.afterCommit(() => this.#known.note(later));
        if (isTerminal(later.state)) this.#wakeAfter(tx, sessionId);
      }
    });
    return due.length >= limit;
  }

  /** Uses up a proof that came beside a call. @returns false when it was taken before */
  async useProof(proven: Proven): Promise<boolean> {
    return this.store.write((tx) => takeProof(tx, proven));
  }

  /** Forgets proofs that are refused by their time. @returns whether there may be more */
  async forgetProofs(limit: number): Promise<boolean> {
    const nowMs = this.clock.now();
    return (await this.store.write((tx) => forgetProofs(tx, nowMs, limit))) >= limit;
  }

  async earliestDeadline(): Promise<number | undefined> {
    return this.store.read(earliestSessionDeadline);
  }

  /** Tells the listener when the work of a delegation is to be seen to. */
  onWork(listener: () => void): void {
    this.#onWork = listener;
  }

  /** Wakes who waits for anything of a session. */
  wake(sessionId: string): void {
    this.#bus.publish(SESSION_TOPIC, sessionId);
  }

  /** Notes, in the transaction of the change, what it means for the work of delegations. */
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
   * Notes which evidence of other sessions a message shows. Whoever took part in a session may show what was found there.
   *
   * @throws DeputeError SESSION_STATE_CONFLICT unknown_evidence
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

/** A message as it comes. */
interface Offer {
  readonly envelope: Envelope;
  readonly agents: readonly KnownAgent[];
  /** What its proof is judged by; undefined where the caller has proved its key otherwise. */
  readonly proof: ProofRules | undefined;
}

/** The end of a session that no message brought. */
export interface Ending {
  /** One more than the last message's. */
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
