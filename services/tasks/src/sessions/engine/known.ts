import type { Session } from "@depute/asp";

/** A session, and the facts about its participants. */
export interface KnownSession {
  readonly session: Session;
  /** The agents' principals by the agents' URIs. */
  readonly principals: ReadonlyMap<string, string>;
  /** The trust levels that the agents had when they joined, by the agents' URIs. */
  readonly levels: ReadonlyMap<string, number>;
  /** The agents' ids in the registry, by the agents' URIs. */
  readonly registryIds: ReadonlyMap<string, string>;
}

/** Maximum number of cached sessions (MAX_SESSIONS), and of objects in a cached session (MAX_OBJECTS). */
const MAX_SESSIONS = 1000;
const MAX_OBJECTS = 64;

/**
 * Caches the sessions to which this process has appended messages, after the commit. Without replicas, only this
 * process writes to the store, so the cache is current. With replicas, the engine does not read the cache. Unlike a
 * read of the store, a read of the cache does not wait for other transactions.
 */
export class KnownSessions {
  readonly #sessions = new Map<string, KnownSession>();

  get(sessionId: string): KnownSession | undefined {
    return this.#sessions.get(sessionId);
  }

  /**
   * Caches a committed session. Call this method in the order of the commits.
   *
   * @param parties the participants, given if one joined; if absent, the method only updates a cached session
   */
  note(session: Session, parties?: Omit<KnownSession, "session">): void {
    const { sessionId } = session;
    const before = this.#sessions.get(sessionId);
    this.#sessions.delete(sessionId);
    const knownParties = parties ?? before;
    if (knownParties === undefined || Object.keys(session.objects).length > MAX_OBJECTS) return;
    this.#sessions.set(sessionId, { ...knownParties, session });
    const [oldest] = this.#sessions.keys();
    if (this.#sessions.size > MAX_SESSIONS && oldest !== undefined) this.#sessions.delete(oldest);
  }
}
